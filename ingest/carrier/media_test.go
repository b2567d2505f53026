package carrier

import (
	"testing"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestURLsOfMediaFollowTheText(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for name, tc := range map[string]struct{ adapter, contentType, body, want string }{
		"Plivo from 0":         {"plivo", form, "MessageUUID=1&From=447700900123&To=447860000001&Text=Look&MediaCount=1&Media0=https://h/a.jpg", "Look\nhttps://h/a.jpg"},
		"Plivo from 1":         {"plivo", form, "MessageUUID=1&From=447700900123&To=447860000001&Text=Look&MediaCount=2&Media1=https://h/a.jpg&Media2=https://h/b.jpg", "Look\nhttps://h/a.jpg\nhttps://h/b.jpg"},
		"Plivo without a text": {"plivo", form, "MessageUUID=1&From=447700900123&To=447860000001&Media0=https://h/a.jpg", "https://h/a.jpg"},
		"Twilio from 0":        {"twilio", form, "MessageSid=1&From=447700900123&To=447860000001&Body=Look&NumMedia=1&MediaUrl0=https://h/a.jpg", "Look\nhttps://h/a.jpg"},
		"Twilio from 1":        {"twilio", form, "MessageSid=1&From=447700900123&To=447860000001&Body=&NumMedia=1&MediaUrl1=https://h/a.jpg", "https://h/a.jpg"},
		"Vonage's image":       {"vonage", "application/json", `{"message_uuid":"1","from":"447700900123","to":"447860000001","channel":"mms","message_type":"image","image":{"url":"https://h/a.jpg","caption":"Look"}}`, "Look\nhttps://h/a.jpg"},
		"Infobip's parts":      {"infobip", "application/json", `{"results":[{"messageId":"1","from":"447700900123","to":"447860000001","message":[{"contentType":"image/jpeg","url":"https://h/a.jpg"},{"contentType":"text/plain","value":"Look"}]}]}`, "Look\nhttps://h/a.jpg"},
		"Infobip's text parts": {"infobip", "application/json", `{"results":[{"messageId":"1","from":"447700900123","to":"447860000001","message":[{"contentType":"text/plain","value":"Look"},{"contentType":"image/jpeg","url":"https://h/a.jpg"},{"contentType":"text/plain","value":"there"}]}]}`, "Look\nthere\nhttps://h/a.jpg"},
		"Vonage's captions":    {"vonage", "application/json", `{"message_uuid":"1","from":"447700900123","to":"447860000001","channel":"mms","image":{"url":"https://h/a.jpg","caption":"Look"},"video":{"url":"https://h/b.mp4","caption":"there"}}`, "Look\nthere\nhttps://h/a.jpg\nhttps://h/b.mp4"},
		"Sinch's media":        {"sinch", "application/json", `{"type":"mo_media","id":"1","from":"447700900123","to":"447860000001","body":{"message":"Look","media":[{"url":"https://h/a.jpg"}]}}`, "Look\nhttps://h/a.jpg"},
		"Sinch without a text": {"sinch", "application/json", `{"type":"mo_media","id":"1","from":"447700900123","to":"447860000001","body":{"media":[{"url":"https://h/a.jpg"}]}}`, "https://h/a.jpg"},
		"Vonage without media": {"vonage", "application/json", `{"message_uuid":"1","from":"447700900123","to":"447860000001","text":"Look"}`, "Look"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Adapters()[tc.adapter].Parse(&intake.Entry{Source: tc.adapter, ContentType: tc.contentType, Body: []byte(tc.body)})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of messages", len(got), 1)
			relaytest.Equal(t, "the text", got[0].Text, tc.want)
		})
	}
}
