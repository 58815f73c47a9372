package compress

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Coding is the name of a content coding; the empty one leaves the body unchanged.
type Coding string

// The codings that the service offers.
const (
	Identity Coding = ""
	Gzip     Coding = "gzip"
	Zstd     Coding = "zstd"
)

// Choose returns the coding that the lines of an Accept-Encoding header prefer (RFC 9110, section 12.5.3); among
// equals, the one that compresses better.
func Choose(accept []string) Coding {
	weights := weigh(accept)
	best, most := Identity, weights["identity"]
	for _, coding := range []Coding{Gzip, Zstd} {
		weight, named := weights[string(coding)]
		if !named {
			weight = weights["*"]
		}
		if weight > 0 && weight >= most {
			best, most = coding, weight
		}
	}
	return best
}

// weigh returns the weight of each coding by its name in lower case.
func weigh(accept []string) map[string]float64 {
	weights := map[string]float64{}
	for _, line := range accept {
		for member := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(member, ";")
			name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "x-")
			if name != "" {
				weights[name] = weight(parameters)
			}
		}
	}
	return weights
}

// weight returns the value of the parameter q. It is 1 without the parameter, and 0, which means not accepted, if the
// value is not a number from 0 to 1.
func weight(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) { // This form also catches NaN.
			return 0
		}
		return q
	}
	return 1
}

// windowBytes limits the memory of a zstd writer. A small window costs little compression, because the lines of an
// export repeat within a few lines.
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
		zstd.WithEncoderConcurrency(1), // A writer serves one request and starts no goroutines.
		zstd.WithWindowSize(windowBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // The options are constants.
	}
	return e
}

// Writer compresses what is written to it. The caller must end it with exactly one of Close and Abandon.
type Writer struct {
	encoder encoder
	pool    *sync.Pool
}

// NewWriter makes a Writer to dst. The coding must not be Identity.
func NewWriter(dst io.Writer, coding Coding) *Writer {
	pool := pools[coding]
	w := &Writer{pool.Get().(encoder), pool} //nolint:forcetypeassert // The pool holds nothing else.
	w.encoder.Reset(dst)
	return w
}

func (w *Writer) Write(p []byte) (int, error) {
	return w.encoder.Write(p) //nolint:wrapcheck // A writer returns errors unchanged.
}

// Close writes the end of the body.
func (w *Writer) Close() error {
	defer w.Abandon()
	if err := w.encoder.Close(); err != nil {
		return fmt.Errorf("ending a compressed body: %w", err)
	}
	return nil
}

// Abandon releases the writer without the end of the body, so that no client takes the part for the whole.
func (w *Writer) Abandon() {
	w.encoder.Reset(nil)
	w.pool.Put(w.encoder)
}

// Append appends a whole body, compressed. The coding must not be Identity.
func Append(dst, body []byte, coding Coding) ([]byte, error) {
	sink := bytes.NewBuffer(dst)
	w := NewWriter(sink, coding)
	if _, err := w.Write(body); err != nil {
		w.Abandon()
		return nil, err
	}
	err := w.Close()
	return sink.Bytes(), err
}

// decoder serves all of ExpandZstd, and starts no goroutines.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // The options are constants.
	}
	return d
})

// ExpandZstd returns the body that Append compressed with Zstd.
func ExpandZstd(body []byte) ([]byte, error) {
	expanded, err := decoder().DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("expanding a body: %w", err)
	}
	return expanded, nil
}
