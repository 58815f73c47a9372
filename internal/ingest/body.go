package ingest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"roomsensor/internal/roomsensor"
)

const (
	// maxBody is the most uploads of one request, in bytes and without their
	// compression.
	maxBody = 16 << 20
	// firstBytes is what a body takes of memory before it shows its size.
	firstBytes = 16 << 10
	// maxMemory bounds the bodies of all requests at once. Beyond it requests
	// are refused, so that a fleet that comes back at once cannot end the
	// process.
	maxMemory = 256 << 20

	// stallTimeout ends a body that stops coming; 16 MiB over a cellular line
	// take minutes, so that the whole has much longer.
	stallTimeout = 30 * time.Second
	bodyTimeout  = 15 * time.Minute
)

// memory counts what the bodies of all requests take.
type memory struct{ taken atomic.Int64 }

func (m *memory) take(n int64) bool {
	if m.taken.Add(n) <= maxMemory {
		return true
	}
	m.taken.Add(-n)
	return false
}

// body is the body of a request, read whole.
type body struct {
	memory *memory
	text   []byte
	taken  int64
}

func (b *body) release() { b.memory.taken.Add(-b.taken) }

// read reads and decompresses the body within all limits.
func (b *body) read(w http.ResponseWriter, r *http.Request) *roomsensor.Error {
	raw := &paced{
		body:       http.MaxBytesReader(w, r.Body, maxBody),
		controller: http.NewResponseController(w),
		last:       time.Now().Add(bodyTimeout),
	}
	defer raw.done()
	decoded, refusal := decoder(r.Header.Values("Content-Encoding"), raw)
	if refusal != nil {
		return refusal
	}
	defer decoded.Close() //nolint:errcheck // It reads from memory of the request alone.
	for {
		if refusal := b.grow(); refusal != nil {
			return refusal
		}
		n, err := decoded.Read(b.text[len(b.text):cap(b.text)])
		b.text = b.text[:len(b.text)+n]
		switch {
		case len(b.text) > maxBody:
			return bodyTooLarge()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unreadable(raw.failed, err)
		}
	}
}

// grow makes room for more, where the memory of all requests allows.
func (b *body) grow() *roomsensor.Error {
	if len(b.text) < cap(b.text) {
		return nil
	}
	size := min(max(firstBytes, 2*cap(b.text)), maxBody+1)
	if !b.memory.take(int64(size - cap(b.text))) {
		return overloaded(queueRetryAfter,
			"The service is busy with uploads. Send the request again after the seconds in Retry-After.")
	}
	b.taken = int64(size)
	b.text = append(make([]byte, 0, size), b.text...)
	return nil
}

func bodyTooLarge() *roomsensor.Error {
	return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
		fmt.Sprintf("The body is larger than %d bytes. Send the uploads in several requests.", maxBody))
}

// unreadable tells a body that did not come, whose error is that of the
// connection, from one that cannot be decompressed. A zstd window is memory
// that the body takes, so that it has the same limit.
func unreadable(raw, decoding error) *roomsensor.Error {
	var large *http.MaxBytesError
	switch {
	case errors.Is(decoding, zstd.ErrWindowSizeExceeded), errors.Is(decoding, zstd.ErrDecoderSizeExceeded):
		return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
			fmt.Sprintf("The body or its zstd window is larger than %d bytes. "+
				"Compress it at a lower level, or send the uploads in several requests.", maxBody))
	case errors.As(raw, &large):
		return bodyTooLarge()
	case errors.Is(raw, os.ErrDeadlineExceeded):
		return roomsensor.Invalid("", "The body came too slowly. Send it again, or in several requests.")
	case raw != nil:
		return roomsensor.Invalid("", "The body ended early. Send it again.")
	}
	return roomsensor.Invalid("Content-Encoding",
		"The body is not of the encoding that Content-Encoding names, or it is cut off.")
}

// decoder undoes the Content-Encoding. The content type is not looked at.
func decoder(encodings []string, raw io.Reader) (io.ReadCloser, *roomsensor.Error) {
	switch strings.ToLower(strings.TrimSpace(strings.Join(encodings, ","))) {
	case "", "identity":
		return io.NopCloser(raw), nil
	case "gzip", "x-gzip":
		return &lazyGzip{raw: raw}, nil
	case "zstd":
		decoder, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxBody))
		if err != nil {
			return nil, roomsensor.Invalid("Content-Encoding", "The body is no valid zstd.")
		}
		return decoder.IOReadCloser(), nil
	}
	return nil, roomsensor.Invalid("Content-Encoding", "Send the body with Content-Encoding gzip or zstd, or without one.")
}

// lazyGzip reads the header of the stream at the first Read, so that it has
// the errors of reading.
type lazyGzip struct {
	raw    io.Reader
	reader *gzip.Reader
}

func (g *lazyGzip) Read(p []byte) (int, error) {
	if g.reader == nil {
		reader, err := gzip.NewReader(g.raw)
		if err != nil {
			return 0, fmt.Errorf("reading gzip: %w", notEOF(err))
		}
		g.reader = reader
	}
	return g.reader.Read(p) //nolint:wrapcheck // A reader passes on io.EOF as it is.
}

func (g *lazyGzip) Close() error { return nil }

// notEOF makes an end in the wrong place an error like every other.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// paced reads from a connection with a deadline that moves on with every read.
type paced struct {
	body       io.Reader
	controller *http.ResponseController
	last       time.Time // no later than this
	failed     error     // of the connection; nil at a clean end
}

func (p *paced) Read(buffer []byte) (int, error) {
	next := time.Now().Add(stallTimeout)
	if next.After(p.last) {
		next = p.last
	}
	_ = p.controller.SetReadDeadline(next) // In a test there may be no connection.
	n, err := p.body.Read(buffer)
	if err != nil && !errors.Is(err, io.EOF) {
		p.failed = err
	}
	return n, err //nolint:wrapcheck // A reader passes on io.EOF as it is.
}

// done lifts the deadline: left behind, it would cancel the request while the
// queue stores its uploads.
func (p *paced) done() { _ = p.controller.SetReadDeadline(time.Time{}) }
