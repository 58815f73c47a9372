package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"roomsensor/internal/compress"
)

// spool holds a body in memory until it is sent. It is compressed, because 250,000 lines have up to 80 MB.
type spool struct {
	parts [][]byte // compressed with Zstd
	part  []byte   // not compressed yet
}

// spoolPart is from how many bytes on a part is compressed.
const spoolPart = 256 << 10

// packFull compresses the last part if it is full.
func (s *spool) packFull() error {
	if len(s.part) < spoolPart {
		return nil
	}
	return s.pack()
}

// pack compresses the last part.
func (s *spool) pack() error {
	packed, err := compress.Append(nil, s.part, compress.Zstd)
	s.parts, s.part = append(s.parts, packed), s.part[:0]
	return err
}

// send writes the body.
func (s *spool) send(_ context.Context, w *writer) error {
	for _, packed := range s.parts {
		text, err := compress.ExpandZstd(packed)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// isConditional reports whether a request asks for the tag of an export (A21.1).
func isConditional(r *http.Request) bool { return len(r.Header.Values("If-None-Match")) > 0 }

// readTag reads the body, and sets its tag: the SHA-256 of its bytes before compression, which a client can compute
// from a file. With hold, the body is sent from memory afterwards, since what has the tag must be what is sent.
func (d *download) readTag(ctx context.Context, hold bool) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	held, sum := &spool{}, sha256.New()
	w := &writer{sink: func(p []byte) error {
		_, _ = sum.Write(p) // It does not fail.
		if !hold {
			return nil
		}
		held.part = append(held.part, p...)
		return held.packFull()
	}}
	if err := w.send(ctx, d.body); err != nil {
		return err
	}
	d.tag, d.body = `W/"`+hex.EncodeToString(sum.Sum(nil))+`"`, held.send
	return held.pack()
}
