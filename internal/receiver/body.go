package receiver

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

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	// maxBody is the limit of a body in bytes, before and after its decompression.
	maxBody = 16 << 20
	// firstBytes is the first buffer of a body. The buffer doubles while the body arrives.
	firstBytes = 16 << 10
	// maxMemory is the limit of all bodies in memory, in bytes. Beyond it requests are refused, so that a fleet that comes
	// back at the same moment cannot exhaust the memory of the process.
	maxMemory = 256 << 20
	// bodyTimeout is the limit of a body that arrives slowly; httpedge.StallTimeout ends a body that stops arriving.
	bodyTimeout = 15 * time.Minute
)

// memoryBudget counts the bytes of all bodies in memory.
type memoryBudget struct{ used atomic.Int64 }

func (m *memoryBudget) reserve(n int64) bool {
	if m.used.Add(n) <= maxMemory {
		return true
	}
	m.used.Add(-n)
	return false
}

// body is the decompressed body of a request.
type body struct {
	budget   *memoryBudget
	text     []byte
	reserved int64
}

// release returns the memory of the body to the budget.
func (b *body) release() { b.budget.used.Add(-b.reserved) }

// read reads and decompresses the body within the limits of size, memory and time.
func (b *body) read(w http.ResponseWriter, r *http.Request) error {
	raw := httpedge.NewBodyReader(w, http.MaxBytesReader(w, r.Body, maxBody), bodyTimeout)
	defer raw.Done()
	decoded, err := newDecoder(r.Header.Values("Content-Encoding"), raw)
	if err != nil {
		return err
	}
	defer decoded.Close() //nolint:errcheck // Nothing can fail that matters after the last read.
	for {
		if err := b.grow(); err != nil {
			return err
		}
		n, err := decoded.Read(b.text[len(b.text):cap(b.text)])
		b.text = b.text[:len(b.text)+n]
		switch {
		case len(b.text) > maxBody:
			return errBodyTooLarge()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return readError(raw.Err(), err)
		}
	}
}

// grow makes room for more bytes if the memory budget allows it.
func (b *body) grow() error {
	if len(b.text) < cap(b.text) {
		return nil
	}
	size := min(max(firstBytes, 2*cap(b.text)), maxBody+1)
	if !b.budget.reserve(int64(size - cap(b.text))) {
		return httpedge.Overloaded(queueRetryAfter,
			"The service is busy with uploads. Send the request again after the seconds in Retry-After.")
	}
	b.reserved = int64(size)
	b.text = append(make([]byte, 0, size), b.text...)
	return nil
}

func errBodyTooLarge() error {
	return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
		fmt.Sprintf("The body is larger than %d bytes. Send the uploads in several requests.", maxBody))
}

// readError returns the public error of a body that could not be read. raw is the error of the connection; if it is
// nil, the body arrived whole and could not be decompressed. A zstd window takes memory like the body, so it has the
// same limit.
func readError(raw, decoding error) error {
	var large *http.MaxBytesError
	switch {
	case errors.Is(decoding, zstd.ErrWindowSizeExceeded), errors.Is(decoding, zstd.ErrDecoderSizeExceeded):
		return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
			fmt.Sprintf("The body or its zstd window is larger than %d bytes. "+
				"Compress it at a lower level, or send the uploads in several requests.", maxBody))
	case errors.As(raw, &large):
		return errBodyTooLarge()
	case errors.Is(raw, os.ErrDeadlineExceeded):
		return roomsensor.Invalid("", "The body came too slowly. Send it again, or in several requests.")
	case raw != nil:
		return roomsensor.Invalid("", "The body ended early. Send it again.")
	}
	return roomsensor.Invalid("Content-Encoding",
		"The body does not have the encoding in Content-Encoding, or it is cut off.")
}

// newDecoder returns a reader that decompresses raw as the Content-Encoding header says. The Content-Type does not
// matter.
func newDecoder(encodings []string, raw io.Reader) (io.ReadCloser, error) {
	switch strings.ToLower(strings.TrimSpace(strings.Join(encodings, ","))) {
	case "", "identity":
		return io.NopCloser(raw), nil
	case "gzip", "x-gzip":
		return &lazyGzip{raw: raw}, nil
	case "zstd":
		decoder, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxBody))
		if err != nil {
			return nil, roomsensor.Invalid("Content-Encoding", "The body is not valid zstd.")
		}
		return decoder.IOReadCloser(), nil
	}
	return nil, roomsensor.Invalid("Content-Encoding", "Send the body with Content-Encoding gzip or zstd, or without one.")
}

// lazyGzip reads the gzip header at the first Read, so that its errors are read errors like the others.
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
	return g.reader.Read(p) //nolint:wrapcheck // A reader returns io.EOF unchanged.
}

func (g *lazyGzip) Close() error { return nil }

// notEOF turns io.EOF, which means a good end, into io.ErrUnexpectedEOF.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
