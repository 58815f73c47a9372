package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Receiver sends uploads with one upload credential, rsi_<id>_<secret>. It is safe for concurrent use.
type Receiver struct{ client *Client }

// NewReceiver returns a client of the receiver at a base URL such as http://127.0.0.1:8081, with the options of New.
func NewReceiver(baseURL, ingestKey string, options ...Option) (*Receiver, error) {
	c, err := newClient(baseURL, "", ingestKey, options)
	return &Receiver{c}, err
}

// UploadReceipt confirms that the queue has stored uploads. Whether their readings can be stored turns out shortly
// after.
type UploadReceipt struct {
	Stored        int      `json:"stored"`         // uploads
	Readings      int      `json:"readings"`       // in them
	IgnoredFields []string `json:"ignored_fields"` // unknown members, the first 10
}

// Upload sends uploads as JSON Lines. To send them again, in any order and division, changes nothing.
func (r *Receiver) Upload(ctx context.Context, lines []byte) (UploadReceipt, error) {
	return fetch[UploadReceipt](ctx, r.client, uploadOf(lines))
}

// UploadReport is what a worker would report of uploads.
type UploadReport struct {
	Uploads       int          `json:"uploads"`
	Readings      int          `json:"readings"`
	Rejects       []LineReject `json:"rejects"` // the first 1000, by line
	IgnoredFields []string     `json:"ignored_fields"`
}

// LineReject is why a part of an upload would be rejected.
type LineReject struct {
	Line   int    `json:"line"`   // number of the upload in the request, from 1
	Reason string `json:"reason"` // stable, such as unknown_unit
	Detail string `json:"detail"` // says what to do
}

// TryUpload reports what would become of uploads, as JSON Lines, and stores nothing.
func (r *Receiver) TryUpload(ctx context.Context, lines []byte) (UploadReport, error) {
	upload := uploadOf(lines)
	upload.query = url.Values{"dry_run": {"true"}}
	return fetch[UploadReport](ctx, r.client, upload)
}

// maxSending is the longest time that a receiver allows a body, which must arrive at 1 KiB/s or faster.
const maxSending = 15 * time.Minute

func uploadOf(lines []byte) *request {
	sending := min(time.Duration(len(lines)>>10)*time.Second, maxSending)
	return &request{method: http.MethodPost, path: "/uploads", body: lines, timeout: attemptTimeout + sending}
}
