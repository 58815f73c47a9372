// Package compress chooses the content coding of a response and applies it, at
// the fastest level: a slower one costs several times the time for little
// (decision 33).
package compress

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Coding is a content coding; the empty one leaves the body as it is.
type Coding string

// The codings that the service offers.
const (
	Identity Coding = ""
	Gzip     Coding = "gzip"
	Zstd     Coding = "zstd"
)

// windowBytes bounds the memory of a zstd writer; exports repeat themselves
// within a few lines.
const windowBytes = 256 << 10

type encoder interface {
	io.WriteCloser
	Reset(dst io.Writer)
}

var pools = map[Coding]*sync.Pool{
	Gzip: {New: func() any { return newGzip() }},
	Zstd: {New: func() any { return newZstd() }},
}

func newGzip() encoder {
	e, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // The level is a constant of the library.
	}
	return e
}

func newZstd() encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), // No goroutines: a writer is one request's.
		zstd.WithWindowSize(windowBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // The options are constants.
	}
	return e
}

// Writer compresses what is written to it. Exactly one of Close and Abandon
// must end it.
type Writer struct {
	encoder encoder
	pool    *sync.Pool
}

// NewWriter writes to dst in a coding other than Identity.
func NewWriter(dst io.Writer, coding Coding) *Writer {
	pool := pools[coding]
	w := &Writer{pool.Get().(encoder), pool} //nolint:forcetypeassert // The pool holds nothing else.
	w.encoder.Reset(dst)
	return w
}

func (w *Writer) Write(p []byte) (int, error) {
	return w.encoder.Write(p) //nolint:wrapcheck // A writer passes errors on as they are.
}

// Close ends the body.
func (w *Writer) Close() error {
	defer w.Abandon()
	if err := w.encoder.Close(); err != nil {
		return fmt.Errorf("ending a compressed body: %w", err)
	}
	return nil
}

// Abandon gives the writer back without ending the body, so that nobody can
// take the part for the whole.
func (w *Writer) Abandon() {
	w.encoder.Reset(nil)
	w.pool.Put(w.encoder)
}

// Append appends the whole of a body in a coding other than Identity.
func Append(dst, body []byte, coding Coding) ([]byte, error) {
	sink := appender(dst)
	w := NewWriter(&sink, coding)
	if _, err := w.Write(body); err != nil {
		w.Abandon()
		return nil, err
	}
	err := w.Close()
	return sink, err
}

type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}
