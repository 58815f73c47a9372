package receiver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// MaxBody is the limit of a body in bytes, before and after its decompression.
const MaxBody = 16 << 20

const (
	// firstBytes is the first buffer of a body, or less if the request states that the body is smaller. The buffer doubles
	// while the body arrives.
	firstBytes = 16 << 10
	// bodyTimeout is the limit of a body that arrives slowly; httpedge.BodyReader ends one that hardly arrives.
	bodyTimeout = 15 * time.Minute
)

const (
	// maxInflating is how many bodies are decompressed at the same time, each on one CPU: two unpack more than a queue can
	// store. A team has one of them, so that it cannot delay others by bodies that take long.
	maxInflating, maxTeamInflating = 2, 1
	// inflateWait limits the wait for others that are decompressed. The worst body, 16 MiB of empty blocks of gzip, takes
	// about 2 seconds of a CPU.
	inflateWait = 10 * time.Second
	// packedCost is how many bytes of text a byte of a compressed body counts at least: gzip can take as long without any
	// text. Uploads rarely have less than 5 times the size of their compressed body.
	packedCost = 4
)

// newInflateLimiter returns the limiter of the bodies that are decompressed at the same time. All requests of a
// credential may wait.
func newInflateLimiter() *fairshare.Limiter {
	const message = "The service is busy decompressing uploads. Send the request again after the seconds in Retry-After."
	return fairshare.New(fairshare.Config{
		Name: "decompression",
		Key:  fairshare.Limit{Waiting: maxPerKey},
		Team: fairshare.Limit{Most: maxTeamInflating, Waiting: 2 * maxPerKey, RetryAfter: shareRetryAfter, Message: message},
		Total: fairshare.Limit{
			Most: maxInflating, Waiting: 8 * maxPerKey, RetryAfter: shareRetryAfter, Message: message,
		},
	})
}

// readBody returns the decompressed body of a request, which may have most bytes before and after that, and charges it,
// also if it is refused. The whole body arrives before it is decompressed, so that a small body that arrives slowly
// takes little memory whatever it contains. The text is a part of the memory, also after an error.
func (q *request) readBody(key *roomsensor.Key, m *fairshare.Held, most int) (text []byte, err error) {
	received, decode, err := receiveBody(q.w.ResponseWriter, q.r, m, most)
	q.bodyRead = err == nil
	if decode == nil || err != nil || (len(received) == 0 && key.Source != nil) { // A source may send nothing (A10.5).
		if refusal := q.rates.charge(key, len(received)); err == nil {
			err = refusal
		}
		return received, err
	}
	defer m.Shrink(cap(received))
	ctx, cancel := context.WithTimeout(q.r.Context(), q.inflateWait)
	defer cancel()
	turn, err := q.inflating.Acquire(ctx, fairshare.Owner{Team: key.TeamID, Key: key.ID}, 1)
	if err != nil {
		return nil, err
	}
	defer turn.Release()
	cost := packedCost * len(received)
	if err := q.rates.charge(key, cost); err != nil {
		return nil, err
	}
	text, err = decompress(received, decode, m, most)
	q.rates.add(key, len(text)-cost)
	return text, err
}

// receiveBody returns the body of a request as it was sent, and its decoder; nil if it is not compressed.
func receiveBody(
	w http.ResponseWriter, r *http.Request, m *fairshare.Held, most int,
) (received []byte, decode *decoder, err error) {
	raw := httpedge.NewBodyReader(w, http.MaxBytesReader(w, r.Body, int64(most)), bodyTimeout)
	defer raw.Done()
	if decode, err = decoderOf(r.Header.Values("Content-Encoding")); err != nil {
		return nil, nil, err
	}
	first := firstBytes
	if r.ContentLength >= 0 && r.ContentLength < firstBytes {
		first = int(r.ContentLength) + 1 // With a byte more, the buffer does not double to find the end.
	}
	if received, err = receive(raw, first, m, most); err != nil {
		err = receiveError(err, most)
	}
	return received, decode, err
}

// receive reads to the end, into a first buffer of a size in bytes, which doubles up to most bytes. It returns errFull
// where there is more.
func receive(r io.Reader, first int, m *fairshare.Held, most int) (received []byte, err error) {
	for err == nil {
		if len(received) == cap(received) && cap(received) < most {
			larger, refusal := buffer(min(max(first, 2*cap(received)), most), m)
			if refusal != nil {
				return received, refusal
			}
			m.Shrink(cap(received))
			received = append(larger, received...)
		}
		received, err = fill(received, r)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return received, err
}

// buffer returns an empty buffer of a size in bytes, for which the memory must have room.
func buffer(size int, m *fairshare.Held) ([]byte, error) {
	if err := m.Grow(size); err != nil {
		return nil, err
	}
	return make([]byte, 0, size), nil
}

// errFull reports that a buffer is full and that there is more to read.
var errFull = errors.New("the buffer is full")

// fill reads once into the free part of a buffer. If there is none, the error is io.EOF or errFull.
func fill(text []byte, r io.Reader) ([]byte, error) {
	if len(text) < cap(text) {
		n, err := r.Read(text[len(text):cap(text)])
		return text[:len(text)+n], err //nolint:wrapcheck // A reader returns io.EOF unchanged.
	}
	var next [1]byte
	n, err := r.Read(next[:])
	if n > 0 {
		return text, errFull
	}
	return text, err //nolint:wrapcheck // A reader returns io.EOF unchanged.
}

// decoder decompresses a body.
type decoder struct {
	// open returns the text of a packed body. The caller must call done.
	open func(packed []byte) (text io.Reader, done func(), err error)
	// size returns what packed says about its size after decompression; it may be missing or wrong.
	size func(packed []byte) int
}

// decoderOf returns the decoder for a Content-Encoding header; nil if the body is not compressed. The Content-Type does
// not matter.
func decoderOf(encodings []string) (*decoder, error) {
	switch strings.ToLower(strings.TrimSpace(strings.Join(encodings, ","))) {
	case "", "identity":
		return nil, nil //nolint:nilnil // Nothing to decode.
	case "gzip", "x-gzip":
		return &decoder{openGzip, gzipSize}, nil
	case "zstd":
		return &decoder{openZstd, zstdSize}, nil
	}
	return nil, roomsensor.Invalid("Content-Encoding",
		"Content-Encoding must be gzip or zstd. Leave the header out to send the body uncompressed.")
}

// decompress returns the text of a packed body in one pass. It begins with a buffer of the size that the body states,
// which may be wrong.
func decompress(packed []byte, d *decoder, m *fairshare.Held, most int) (text []byte, err error) {
	r, done, err := d.open(packed)
	if err == nil {
		defer done()
		text, err = receive(r, max(firstBytes, d.size(packed)+1), m, most) // As in receiveBody, with a byte more.
	}
	var public *roomsensor.Error
	switch {
	case err == nil:
		return text, nil
	case errors.As(err, &public):
		return text, err
	case errors.Is(err, errFull):
		return text, errBodyTooLarge(most)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return text, roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
			fmt.Sprintf("The body or its zstd window is larger than %d bytes. "+
				"Compress it at a lower level, or send the uploads in several requests.", MaxBody))
	}
	return text, roomsensor.Invalid("Content-Encoding",
		"The body cannot be decompressed as Content-Encoding says, or it is cut off.")
}

func openGzip(packed []byte) (io.Reader, func(), error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, nil, fmt.Errorf("reading gzip: %w", err)
	}
	return r, func() {}, nil
}

// gzipSize reads the size at the end of the last member.
func gzipSize(packed []byte) int {
	if len(packed) < 4 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(packed[len(packed)-4:]))
}

// zstdDecoders holds the decoders that are not in use. Each keeps a window as large as a body names, up to MaxBody,
// which no request counts.
var zstdDecoders = func() chan *zstd.Decoder {
	decoders := make(chan *zstd.Decoder, maxInflating)
	for range cap(decoders) {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(MaxBody))
		if err != nil {
			panic(err) // An option is wrong.
		}
		decoders <- d
	}
	return decoders
}()

func openZstd(packed []byte) (io.Reader, func(), error) {
	if len(packed) == 0 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	d := <-zstdDecoders
	done := func() {
		_ = d.Reset(nil) // It must not refer to the body.
		zstdDecoders <- d
	}
	if err := d.Reset(bytes.NewReader(packed)); err != nil {
		done()
		return nil, nil, fmt.Errorf("reading zstd: %w", err)
	}
	return d, done, nil
}

// zstdSize reads the size of the first frame, which may be missing. Readings are then rarely larger than a tenth.
func zstdSize(packed []byte) int {
	var header zstd.Header
	if err := header.Decode(packed); err != nil || !header.HasFCS {
		return 10 * len(packed)
	}
	return int(min(header.FrameContentSize, MaxBody))
}

func errBodyTooLarge(most int) error {
	return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
		fmt.Sprintf("The body is larger than %d bytes. Send it in several requests.", most))
}

// receiveError returns the public error of a body that did not arrive.
func receiveError(err error, most int) error {
	var large *http.MaxBytesError
	var public *roomsensor.Error
	switch {
	case errors.As(err, &public):
		return err
	case errors.As(err, &large):
		return errBodyTooLarge(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return roomsensor.Invalid("", "The body arrived too slowly. Send it again, or in several requests.")
	}
	return roomsensor.Invalid("", "The body did not arrive completely. Send it again.")
}
