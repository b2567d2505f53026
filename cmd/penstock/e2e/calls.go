package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"strings"

	"github.com/penstock/penstock/relay/relaytest"
)

// CallRecord returns the record of a call in November 2026, as a switch posts it.
func CallRecord(id string) string {
	return `{"id":"` + id + `","start":"2026-11-20T09:34:15Z","from":"447700900123","to":"447860000001"}`
}

// RequestArchive requests an archive of call records and returns its handle.
func (c Client) RequestArchive(body string) string {
	c.Gateway.T.Helper()
	var archive struct{ Data struct{ Handle string } }
	c.Post("/v2/sip/cdr/request", body).Decode(c.Gateway.T, &archive)
	return archive.Data.Handle
}

// DownloadArchive waits for an archive and returns the rows of each file, without headers. It
// joins the fields of a row with "|".
func (c Client) DownloadArchive(handle string) map[string][]string {
	c.Gateway.T.Helper()
	var body string
	relaytest.Eventually(c.Gateway.T, "the archive is ready", func() (any, bool) {
		resp, err := c.Try("GET", "/v2/sip/cdr/"+handle+"/download", "")
		body = resp.Body
		return resp.Status, err == nil && resp.Status == 200
	})
	z, err := zip.NewReader(bytes.NewReader([]byte(body)), int64(len(body)))
	relaytest.NoError(c.Gateway.T, err)
	files := make(map[string][]string)
	for _, f := range z.File {
		r, err := f.Open()
		relaytest.NoError(c.Gateway.T, err)
		rows, err := csv.NewReader(r).ReadAll()
		relaytest.NoError(c.Gateway.T, err)
		files[f.Name] = []string{}
		for _, row := range rows[1:] {
			files[f.Name] = append(files[f.Name], strings.Join(row, "|"))
		}
	}
	return files
}

// ArchiveOfNovember is the body of a request for the call records of November 2026 in one
// file.
const ArchiveOfNovember = `{"from_date":"2026-11-01 00:00:00","to_date":"2026-11-30 23:59:59","single_file":true}`
