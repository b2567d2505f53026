package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// sample is a successful request of an operation.
type sample struct{ operation, method, target, contentType, body string }

// samples returns at least one successful request for every operation. In a body or target,
// NEW stands for a new id.
func samples(ids sampleIDs) []sample {
	const js, form = "application/json", "application/x-www-form-urlencoded"
	list := []sample{
		{"createDecoder", "POST", "/iot/decoders", js, `{"name":"a","description":"b","type":"other","codec":"json","loraWanMacVersion":"1.0.3","loraWanRevision":"A","loraSupportClassB":true,"loraSupportClassC":false,"useRawPayload":false}`},
		{"createDecoder", "POST", "/iot/decoders?name=a&description=b&type=other&codec=expr&source=t+%3D+1.0&useRawPayload=true", "", ""},
		{"listDecoders", "GET", "/iot/decoders", "", ""},
		{"getDecoder", "GET", "/iot/decoders/lpp", "", ""},
		{"addDecoderSensor", "POST", "/iot/decoders/lpp/sensors", js, `{"sensor_type_id":"state","key":"digital_in_1"}`},
		{"addDecoderSensor", "POST", "/iot/decoders/lpp/sensors?sensor_type_id=state&key=digital_in_2", "", ""},
		{"listDecoderSensors", "GET", "/iot/decoders/lpp/sensors", "", ""},
		{"listDevices", "GET", "/iot/devices", "", ""},
		{"getDevice", "GET", "/iot/devices/" + ids.device, "", ""},
		{"getDeviceByIdentifier", "GET", "/iot/devices/identifier/shed", "", ""},
		{"listSensors", "GET", "/iot/devices/" + ids.device + "/sensors?searchKey=temp", "", ""},
		{"listReadings", "GET", "/iot/devices/" + ids.device + "/readings?limit=10&startDate=2020-01-01%2000:00:00&endDate=2099-01-01%2000:00:00", "", ""},
		{"addReadings", "POST", "/iot/devices/" + ids.device + "/readings", js, `{"reading":[{"values":{"temperature":6},"fPort":2,"time":"2026-01-31 12:00:00"}],"readings":[{"hex":"0167"},[1,103]]}`},
		{"addReadings", "POST", "/iot/devices/" + ids.device + "/readings?reading=%7B%22values%22:%7B%22temperature%22:7%7D%7D", "", ""},
		{"aggregateReadings", "GET", "/iot/devices/" + ids.device + "/readings/aggregate?type=min_ave_max&granularity=two_weeks&startDate=2020-01-01%2000:00:00&endDate=2099-01-01%2000:00:00&units=imperial", "", ""},
		{"aggregateReadings", "GET", "/iot/devices/" + ids.device + "/readings/aggregate?type=first", "", ""},
		{"latestReadings", "GET", "/iot/devices/" + ids.device + "/readings/latest", "", ""},
		{"patchSensor", "PATCH", "/iot/sensors/" + ids.sensor, js, `{"name":"Shed","slope":1.5,"offset":-2,"retention_days":30}`},
		{"patchSensor", "PATCH", "/iot/sensors/" + ids.sensor + "?slope=1&offset=0&retention_days=0&name=Shed", "", ""},
		{"frameLorawan", "POST", "/webhooks/lorawan", js, `{"channel_id":"1","feeds":[{"created_at":"2026-01-31T12:00:00Z","field1":{"value":5}}]}`},
		{"getCredit", "GET", "/v2/sms/credit", "", ""},
		{"lookUpNumber", "GET", "/v2/network-lookup/447700900123", "", ""},
		{"lookUpNumber", "GET", "/v2/network-lookup/33612345678", "", ""},
		{"listCredit", "GET", "/admin/credit?account=1", "", ""},
		{"listCredit", "GET", "/admin/credit?account=1&limit=1&cursor=3", "", ""},
		{"requestCallRecords", "POST", "/v2/sip/cdr/request", js, `{"from_date":"2026-11-01 00:00:00","to_date":"2026-11-30 23:59:59","email":"desk@example.com","format":"UKv3a","single_file":true}`},
		{"requestCallRecords", "POST", "/v2/sip/cdr/request?from_date=2026-11-01&to_date=2026-11-30T00:00:00Z&single_file=false", "", ""},
		{"downloadCallRecords", "GET", "/v2/sip/cdr/" + ids.archive + "/download", "", ""},
		{"listSourceIPs", "GET", "/v2/sip/trunk/source-ips", "", ""},
		{"sipRecords", "POST", "/inbound/cdr/sip", js, `{"id":"NEW","start":"2026-11-20T09:34:15Z","end":"2026-11-20T09:35:12Z","from":"447700900123","to":"447860000001"}`},
		{"listGeographicActions", "GET", "/v2/sms-relay/geo/actions", "", ""},
		{"listGeographicRelays", "GET", "/v2/sms-relay/geo?prefix=4478*&page=2&per_page=1", "", ""},
		{"getGeographicRelay", "GET", "/v2/sms-relay/geo/g2", "", ""},
		{"patchGeographicRelay", "PATCH", "/v2/sms-relay/geo/g2", js, `{"action":"email","parameters":["desk@example.com"]}`},
		{"listNumberActions", "GET", "/v2/sms-relay/vmn/actions?page=1&per_page=2", "", ""},
		{"listNumberRelays", "GET", "/v2/sms-relay/vmn?number=4478*", "", ""},
		{"getNumberRelay", "GET", "/v2/sms-relay/vmn/v1", "", ""},
		{"patchNumberRelay", "PATCH", "/v2/sms-relay/vmn/v1?action=inactive", "", ""},
		{"readInbox", "GET", "/v2/sms-relay/vmn/desk/inbox", "", ""},
		{"acknowledgeMessage", "DELETE", "/v2/sms-relay/vmn/desk/inbox/" + ids.message, "", ""},
		{"generic", "POST", "/webhooks/generic?decoder_id=sent", js, `{"deviceId":"shed","temperature":5,"door":"ajar"}`},
		{"genericOfDevice", "POST", "/webhooks/generic/shed/door", js, `{"temperature":5}`},
		{"genericOfDevice", "POST", "/webhooks/generic/shed/window?decoder_id=sent", js, `{"temperature":5}`},
		{"putInventory", "PUT", "/admin/inventory?prune=false&reset=relays,sims,credit&account=globex", js, `{"accounts":[{"name":"globex"}]}`},
		{"putInventory", "PUT", "/admin/inventory", "application/yaml", `accounts: [{name: globex, tokens: [{token: globex-token-0123456}]}]`},
		{"putInventory", "PUT", "/admin/inventory?dry_run=true&prune=true&allow_removals=1&adopt=true", js, `{"document":"site-a","accounts":[{"name":"globex"}]}`},
		{"getInventory", "GET", "/admin/inventory", "", ""},
		{"getInventory", "GET", "/admin/inventory?document=default&present=true", "", ""},
		{"getInventory", "GET", "/admin/inventory?document=default&present=true&secrets=true", "", ""},
		{"getInventoryDrift", "GET", "/admin/inventory/drift?document=default", "", ""},
		{"listEvents", "GET", "/admin/events?kind=uplink&limit=1&state=quarantined&from=2020-01-01T00:00:00Z&to=2099-01-01%2000:00:00&q=nothing", "", ""},
		{"listEvents", "GET", "/admin/events", "", ""},
		{"getEvent", "GET", "/admin/events/" + ids.message, "", ""},
		{"replayEvents", "POST", "/admin/events/replay", js, `{"state":"quarantined","dry_run":true}`},
		{"replayEvents", "POST", "/admin/events/replay?source=nobody&account=1&device=shed&reason=unread", "", ""},
		{"listDeliveries", "GET", "/admin/deliveries", "", ""},
		{"listDeliveries", "GET", "/admin/deliveries?state=dead&kind=relay&relay=g1&number=447800012345&reason=refused&target=127&account=1&limit=5&q=x", "", ""},
		{"replayDeliveries", "POST", "/admin/deliveries/replay", js, `{"ids":["none"],"include_delivered":true}`},
		{"listDeliveries", "GET", "/admin/deliveries?waits_for=breaker", "", ""},
		{"listBreakers", "GET", "/admin/breakers", "", ""},
		{"closeBreaker", "DELETE", "/admin/breakers/none", "", ""},
		{"getStatus", "GET", "/admin/status", "", ""},
		{"getTraffic", "GET", "/admin/traffic", "", ""},
		{"getTraffic", "GET", "/admin/traffic?range=day", "", ""},
		{"listAccounts", "GET", "/admin/accounts", "", ""},
		{"listGateways", "GET", "/admin/gateways", "", ""},
		{"forgetGateway", "DELETE", "/admin/gateways/" + ids.node, "", ""},
		{"listRelaysOfAccounts", "GET", "/admin/relays", "", ""},
		{"listRelaysOfAccounts", "GET", "/admin/relays?account=1&kind=geo&q=447&limit=1&cursor=MSBnZW8gYQ", "", ""},
		{"showRelay", "GET", "/admin/relays/geo/g1?account=1", "", ""},
		{"explainRelay", "POST", "/admin/relays/explain", js, `{"account":1,"from":"447700900123","to":"447800012345","text":"hi","received_at":"2026-01-31T12:00:00Z"}`},
		{"explainRelay", "POST", "/admin/relays/explain", js, `{"from":"447700900123","to":"447800112345","data":"00ff","udh":"050003cc0201","coding":8}`},
		{"alive", "GET", "/healthz", "", ""},
		{"ready", "GET", "/readyz", "", ""},
		{"metrics", "GET", "/metrics", "", ""},
		{"document", "GET", "/openapi.json", "", ""},
		{"page", "GET", "/docs", "", ""}, {"pageScript", "GET", "/docs/reference.js", "", ""},
		{"root", "GET", "/", "", ""}, {"console", "GET", "/console", "", ""},
		{"consoleFile", "GET", "/console/app.js", "", ""},
		{"consoleModule", "GET", "/console/core/dom.js", "", ""},
		{"consoleModule", "GET", "/console/uplot-1.6.32/uPlot.min.css", "", ""},
		{"kannelPost", "POST", "/inbound/sms/kannel", form, "id=NEW&from=447700900123&to=447800012345&text=hi&coding=0&charset=UTF-8&time=1700000000&smsc=s1&udh="},
		{"kannelPostOfSource", "POST", "/inbound/sms/kannel/hq", form, "id=NEW&from=447700900123&to=447800112345&text=hi"},
		{"kannelGet", "GET", "/inbound/sms/kannel?id=NEW&from=447700900123&to=447800012345&text=hi&coding=-1&time=2026-01-31%2012:00:00&network=23415", "", ""},
		{"kannelGetOfSource", "GET", "/inbound/sms/kannel/hq?id=NEW&from=447700900123&to=440000&text=hi", "", ""},
		{"jsonPost", "POST", "/inbound/sms/json", js, `{"id":"NEW","from":"447700900123","to":"447800012345","text":"hi","sent_at":"2026-01-31T12:00:00Z","network":"23415"}`},
		{"jsonPost", "POST", "/inbound/sms/json", js, `{"id":7,"from":447700900123,"to":447860000001,"data":"0041","udh":"","coding":16}`},
		{"jsonPostOfSource", "POST", "/inbound/sms/json/hq", js, `{"id":"NEW","from":"447700900123","to":"440000","text":"nobody takes it"}`},
		{"jsonGet", "GET", "/inbound/sms/json?id=NEW&from=447700900123&to=447800112345&text=hi&coding=7&sent_at=2026-01-31T12:00:00Z&network=n", "", ""},
		{"jsonGetOfSource", "GET", "/inbound/sms/json/hq?id=NEW&from=447700900123&to=447800112345&data=ff&udh=&coding=8", "", ""},
	}
	return slices.Concat(list, userSamples(ids.leaver), tokenSamples(ids.revoked), accountSamples(), createdSamples(ids.created), hookSamples(), soapSamples(), ruleSamples(ids.device, ids.rules), deviceSamples(ids), ledgerSamples(ids.asset), simSamples(ids.sims), usageSamples(ids.usage), studioSamples(ids), sendSamples(ids.pending), receiptSamples(), carrierSamples())
}

// carrierSamples returns messages in the form of each carrier.
func carrierSamples() (list []sample) {
	const js, form = "application/json", "application/x-www-form-urlencoded"
	for name, post := range map[string]struct{ query, kind, body string }{
		"twilio":  {"MessageSid=NEW&AccountSid=AC1&From=%2B447700900123&To=%2B447800012345&Body=hi&NumMedia=0&SmsStatus=received", form, "MessageSid=NEW&From=%2B447700900123&To=%2B447800012345&Body=hi&NumSegments=1&ApiVersion=2010-04-01"},
		"vonage":  {"messageId=NEW&msisdn=447700900123&to=447800012345&text=hi&type=text&message-timestamp=2026-01-31+12%3A00%3A00&concat=true&concat-ref=a&concat-total=2&concat-part=1", js, `{"messageId":"NEW","msisdn":"447700900123","to":"447800012345","text":"hi","type":"unicode"}`},
		"infobip": {"messageId=NEW&from=447700900123&to=447800012345&text=hi&smsCount=1", js, `{"results":[{"messageId":"NEW","from":"447700900123","to":"447800012345","text":"hi","receivedAt":"2026-01-31T12:00:00.000+0000"}],"messageCount":1}`},
		"plivo":   {"MessageUUID=NEW&From=447700900123&To=447800012345&Text=hi&Type=sms&Units=1", form, "MessageUUID=NEW&From=447700900123&To=447800012345&Body=hi&Type=mms&MediaCount=1&Media1=https%3A%2F%2Fx%2F1"},
		"sinch":   {"type=mo_text&id=NEW&from=447700900123&to=447800012345&body=hi&received_at=2026-01-31T12:00:00Z", js, `{"type":"mo_binary","id":"NEW","from":"447700900123","to":"447800012345","body":"AP8Q","udh":"0605040b8423f0","operator_id":"23415"}`},
		"android": {"from=447700900123&to=447800012345&text=hi&sentStamp=1700000000000&receivedStamp=1700000000001&sim=sim1", js, `{"event":"sms:received","id":"NEW","payload":{"message":"hi","phoneNumber":"+447700900123","recipient":"447800012345"}}`},
	} {
		for suffix, path := range map[string]string{"": "", "OfSource": "/nobody"} {
			list = append(list,
				sample{name + "Get" + suffix, "GET", "/inbound/sms/" + name + path + "?" + post.query, "", ""},
				sample{name + "Post" + suffix, "POST", "/inbound/sms/" + name + path, post.kind, post.body})
		}
	}
	return list
}

// checkMistakes sends requests that single operations refuse, and checks the statuses.
func checkMistakes(g *e2e.Gateway) {
	const js = "application/json"
	for _, tc := range append(slices.Concat(userMistakes(), tokenMistakes(), accountMistakes(), createdMistakes(), ruleMistakes(), deviceMistakes(), soapMistakes(), studioMistakes(), ledgerMistakes(), simMistakes(), usageMistakes(), sendMistakes(), receiptMistakes()), []refusedSample{
		{sample{"", "POST", "/iot/decoders", "text/plain", `{}`}, 415},
		{sample{"", "POST", "/iot/decoders", js, `{"type":"cellular"}`}, 422},
		{sample{"", "POST", "/iot/decoders", js, `{"name":7}`}, 422},
		{sample{"", "GET", "/iot/decoders/none", "", ""}, 404},
		{sample{"", "DELETE", "/admin/gateways/none", "", ""}, 404},
		{sample{"", "GET", "/admin/identifiers?q=shed", "", ""}, 422},
		{sample{"", "DELETE", "/admin/identifiers/shed", "", ""}, 404},
		{sample{"", "GET", "/admin/traffic?range=year", "", ""}, 422},
		{sample{"", "GET", "/console/nothing.js", "", ""}, 404},
		{sample{"", "GET", "/console/core/nothing.js", "", ""}, 404},
		{sample{"", "GET", "/admin/inventory?document=none", "", ""}, 404}, {sample{"", "GET", "/admin/inventory/drift?document=none", "", ""}, 404},
		{sample{"", "GET", "/admin/inventory?present=perhaps", "", ""}, 422},
		{sample{"", "POST", "/admin/recover", "", ""}, 409},
		{sample{"", "POST", "/admin/recover", js, `{"accept_server":7}`}, 422},
		{sample{"", "GET", "/iot/decoders/none/sensors", "", ""}, 404},
		{sample{"", "POST", "/iot/decoders/none/sensors", js, `{"sensor_type_id":"state","key":"k"}`}, 404},
		{sample{"", "POST", "/iot/decoders/lpp/sensors", js, `{"sensor_type_id":"none"}`}, 422},
		{sample{"", "GET", "/iot/devices/none", "", ""}, 422},
		{sample{"", "GET", "/iot/devices/identifier/none", "", ""}, 422},
		{sample{"", "GET", "/iot/devices/none/sensors", "", ""}, 404},
		{sample{"", "GET", "/iot/devices/none/readings", "", ""}, 404},
		{sample{"", "POST", "/iot/devices/none/readings", js, `{"reading":[1]}`}, 404},
		{sample{"", "GET", "/iot/devices/none/readings?limit=0&startDate=now", "", ""}, 422},
		{sample{"", "GET", "/iot/devices/none/readings/latest", "", ""}, 404},
		{sample{"", "GET", "/iot/devices/none/readings/latest?units=feet", "", ""}, 422},
		{sample{"", "GET", "/iot/devices/none/readings/aggregate?type=min", "", ""}, 404},
		{sample{"", "GET", "/iot/devices/none/readings/aggregate?type=mode&granularity=year", "", ""}, 422},
		{sample{"", "PATCH", "/iot/sensors/none", js, `{"slope":2}`}, 404},
		{sample{"", "PATCH", "/iot/sensors/none", js, `{"retention_days":-1,"name":""}`}, 422},
		{sample{"", "GET", "/v2/network-lookup/0770", "", ""}, 422},
		{sample{"", "POST", "/v2/sip/cdr/request", js, `{"from_date":"2026-11-02 00:00:00","to_date":"2026-11-01 00:00:00"}`}, 422},
		{sample{"", "GET", "/v2/sip/cdr/none/download", "", ""}, 404},
		{sample{"", "POST", "/inbound/cdr/sip", js, `{"id":"a"}`}, 422},
		{sample{"", "GET", "/v2/network-lookup/447700909004", "", ""}, 503},
		{sample{"", "GET", "/admin/credit?cursor=x&limit=0", "", ""}, 422},
		{sample{"", "GET", "/admin/credit?account=999", "", ""}, 404},
		{sample{"", "GET", "/v2/sms-relay/geo/actions?page=0", "", ""}, 422},
		{sample{"", "GET", "/v2/sms-relay/geo?per_page=501", "", ""}, 422},
		{sample{"", "GET", "/v2/sms-relay/geo/none", "", ""}, 404},
		{sample{"", "PATCH", "/v2/sms-relay/geo/none", js, `{"action":"black_hole"}`}, 404},
		{sample{"", "PATCH", "/v2/sms-relay/geo/g1", js, `{"action":"http_get","parameters":["http://169.254.169.254/"]}`}, 422},
		{sample{"", "GET", "/v2/sms-relay/vmn/actions?page=x", "", ""}, 422},
		{sample{"", "GET", "/v2/sms-relay/vmn?page=0", "", ""}, 422},
		{sample{"", "GET", "/v2/sms-relay/vmn/none", "", ""}, 404},
		{sample{"", "PATCH", "/v2/sms-relay/vmn/none", js, `{"action":"inactive"}`}, 404},
		{sample{"", "PATCH", "/v2/sms-relay/vmn/v1", js, `{"action":"teleport"}`}, 422},
		{sample{"", "GET", "/v2/sms-relay/vmn/none/inbox", "", ""}, 404},
		{sample{"", "GET", "/v2/sms-relay/vmn/desk/inbox?page=0", "", ""}, 422},
		{sample{"", "DELETE", "/v2/sms-relay/vmn/desk/inbox/none", "", ""}, 404},
		{sample{"", "POST", "/webhooks/lorawan", "application/x-protobuf", "\x0a\x01\x02"}, 415},
		{sample{"", "GET", "/webhooks/lorawan?rssi=-90", "", ""}, 422},
		{sample{"", "GET", "/webhooks/lorawan/below?rssi=-90", "", ""}, 422},
		{sample{"", "GET", "/webhooks/community?rssi=-90", "", ""}, 422},
		{sample{"", "GET", "/webhooks/community/below?rssi=-90", "", ""}, 422},
		{sample{"", "GET", "/webhooks/lpwan?rssi=-90", "", ""}, 422},
		{sample{"", "GET", "/webhooks/lpwan/below?rssi=-90", "", ""}, 422},
		{sample{"", "GET", "/webhooks/sensor-vendor?rssi=-90", "", ""}, 422},
		{sample{"", "GET", "/webhooks/sensor-vendor/below?rssi=-90", "", ""}, 422},
		{sample{"", "POST", "/inbound/sms/json", js, `{"id":"m","to":"x","coding":9}`}, 422},
		{sample{"", "GET", "/inbound/sms/json?id=m", "", ""}, 422},
		{sample{"", "GET", "/inbound/sms/json/hq?id=m", "", ""}, 422},
		{sample{"", "POST", "/inbound/sms/kannel", "application/x-www-form-urlencoded", "from=1"}, 422},
		{sample{"", "POST", "/inbound/sms/kannel/hq", "application/x-www-form-urlencoded", "from=1"}, 422},
		{sample{"", "GET", "/inbound/sms/kannel?from=1", "", ""}, 422},
		{sample{"", "GET", "/inbound/sms/kannel/hq?from=1", "", ""}, 422},
		{sample{"", "PUT", "/admin/inventory", js, `{"accounts":[{"name":""}]}`}, 422},
		{sample{"", "PUT", "/admin/inventory?reset=everything", js, `{}`}, 422},
		{sample{"", "GET", "/admin/events?kind=letter&limit=0&from=now", "", ""}, 422},
		{sample{"", "POST", "/admin/events/replay", js, `{}`}, 422},
		{sample{"", "POST", "/admin/events/replay?decoder=nobody", "", ""}, 422},
		{sample{"", "POST", "/admin/events/replay", js, `{"relay":"nobody"}`}, 422},
		{sample{"", "GET", "/admin/deliveries?state=lost", "", ""}, 422},
		{sample{"", "GET", "/admin/events/none", "", ""}, 404},
		{sample{"", "POST", "/admin/relays/explain", js, `{"to":"x"}`}, 422},
		{sample{"", "POST", "/admin/deliveries/replay", js, `{"ids":"all"}`}, 422},
	}...) {
		owner, _ := tc.clients(g)
		if resp := tc.send(owner); resp.Status != tc.status {
			g.T.Errorf("%s: %d %s, want %d", resp.Request, resp.Status, resp.Body, tc.status)
		}
	}
	if resp := g.XAuth("globex-token-0123456").Get("/v2/network-lookup/447700900123"); resp.Status != 402 {
		g.T.Errorf("a lookup without credit: %d %s, want 402", resp.Status, resp.Body)
	}
	checkSendsWithoutCredit(g)
	checkSendsWithOneKey(g)
	for _, s := range carrierSamples() {
		s.target, _, _ = strings.Cut(s.target, "?")
		s.target, s.contentType, s.body = s.target+"?to=x", "", ""
		owner, _ := s.clients(g)
		if resp := s.send(owner); resp.Status != 422 {
			g.T.Errorf("%s: %d %s, want 422", resp.Request, resp.Status, resp.Body)
		}
	}
}

// TestListsAreTheSameOnAllGateways compares the answers to every list from three gateways on the same
// back ends.
func TestListsAreTheSameOnAllGateways(t *testing.T) {
	t.Parallel()
	t.Run("every list is the same on all gateways", func(t *testing.T) { testSameLists(t, e2e.RealSite(t)) })
}

// cursor matches the field of an answer that names the next page.
var cursor = regexp.MustCompile(`"next":"[^"]+"`)

// testSameLists creates sample records behind the balancer and compares the answers of the
// gateways to every GET sample and to lists of the admin API.
func testSameLists(t *testing.T, s *e2e.Site) {
	c := e2e.StartCluster(t, s, e2e.Fixture(t, "contract.yaml", "https://example.com/callback", "http://127.0.0.1:9/callback"), "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true")
	doc := contract(t)
	ids := fillWithSamples(c.Front)
	c.Front.AwaitProcessed()
	accountSamples := slices.DeleteFunc(samples(ids), func(s sample) bool { return !ofAccounts(operation(doc, s.operation)) })
	relaytest.Eventually(t, "the account's data is the same on all gateways", func() (any, bool) { // keys without a mapping are saved later
		want := readOwnData(c.Gateways[0], accountSamples)
		for _, g := range c.Gateways[1:] {
			for target, body := range readOwnData(g, accountSamples) {
				if body != want[target] {
					return fmt.Sprintf("%s on the first gateway:\n%s\non another gateway:\n%s", target, want[target], body), false
				}
			}
		}
		return nil, true
	})
	for _, target := range []string{
		"/admin/events", "/admin/events?kind=uplink&limit=2", "/admin/deliveries", "/admin/messages?account=1", "/admin/credit?account=1", "/admin/inventory",
		"/admin/breakers", "/admin/decoders/sent", "/admin/events/" + ids.message,
	} {
		relaytest.Eventually(t, target+" is the same on all gateways", func() (any, bool) { // retries change deliveries meanwhile
			var bodies []string
			for _, g := range c.Gateways { // a cursor depends on the search of the gateway
				resp := g.Admin().Get(target)
				if resp.Status != 200 {
					return resp, false
				}
				bodies = append(bodies, cursor.ReplaceAllString(resp.Body, ""))
			}
			return bodies, len(slices.Compact(slices.Clone(bodies))) == 1
		})
	}
	c.Gateways[2].Admin().Get("/admin/gateways").Mentions(t, 200, c.Gateways[0].URL(), c.Gateways[1].URL(), c.Gateways[2].URL())
}
