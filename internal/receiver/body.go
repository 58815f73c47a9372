package receiver

import (
	"bytes"
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

const (
	// maxBody is the limit of a body in bytes, before and after its decompression.
	maxBody = 16 << 20
	// firstBytes is the first buffer of a body, or less if the request states that the body is smaller. The buffer doubles
	// while the body arrives.
	firstBytes = 16 << 10
	// bodyTimeout is the limit of a body that arrives slowly; httpedge.BodyReader ends one that hardly arrives.
	bodyTimeout = 15 * time.Minute
)

// readBody returns the decompressed body of a request. The whole body arrives before it is decompressed, so that a
// small body that arrives slowly takes little memory whatever it contains. The text is a part of the memory, also after
// an error.
func readBody(w http.ResponseWriter, r *http.Request, m *fairshare.Held) (text []byte, err error) {
	raw := httpedge.NewBodyReader(w, http.MaxBytesReader(w, r.Body, maxBody), bodyTimeout)
	defer raw.Done()
	decode, err := decoderOf(r.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	first := firstBytes
	if r.ContentLength >= 0 && r.ContentLength < firstBytes {
		first = int(r.ContentLength) + 1 // With a byte more, the buffer does not double to find the end.
	}
	received, err := receive(raw, first, m)
	if err != nil {
		return received, receiveError(err)
	}
	if decode == nil {
		return received, nil
	}
	defer m.Shrink(cap(received))
	return decompress(received, decode, m)
}

// receive reads a body as it was sent, into a first buffer of a size in bytes.
func receive(r io.Reader, first int, m *fairshare.Held) (received []byte, err error) {
	for err == nil {
		if len(received) == cap(received) && cap(received) < maxBody {
			larger, refusal := buffer(max(first, 2*cap(received)), m)
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

// fillAll reads to the end into the free part of a buffer. It returns errFull where the capacity of text is too small.
func fillAll(text []byte, r io.Reader) ([]byte, error) {
	for {
		var err error
		if text, err = fill(text, r); errors.Is(err, io.EOF) {
			return text, nil
		} else if err != nil {
			return text, err
		}
	}
}

// decoder decompresses a body. It appends to text and returns errFull where the capacity of text is too small.
type decoder struct {
	decode func(packed, text []byte) ([]byte, error)
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
		return &decoder{decodeGzip, gzipSize}, nil
	case "zstd":
		return &decoder{decodeZstd, zstdSize}, nil
	}
	return nil, roomsensor.Invalid("Content-Encoding",
		"Content-Encoding must be gzip or zstd. Leave the header out to send the body uncompressed.")
}

// decompress returns the text of a packed body. It begins with a buffer of the size that the body states, and starts
// again with a larger one if that was wrong, so that no statement of a client takes more memory than is counted.
func decompress(packed []byte, d *decoder, m *fairshare.Held) ([]byte, error) {
	for size := min(max(firstBytes, d.size(packed)), maxBody); ; size = min(2*size, maxBody) {
		text, err := buffer(size, m)
		if err != nil {
			return nil, err
		}
		text, err = d.decode(packed, text)
		switch {
		case err == nil:
			return text, nil
		case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return text, roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
				fmt.Sprintf("The body or its zstd window is larger than %d bytes. "+
					"Compress it at a lower level, or send the uploads in several requests.", maxBody))
		case !errors.Is(err, errFull):
			return text, roomsensor.Invalid("Content-Encoding",
				"The body cannot be decompressed as Content-Encoding says, or it is cut off.")
		case size == maxBody:
			return text, errBodyTooLarge()
		}
		m.Shrink(size)
	}
}

func decodeGzip(packed, text []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return text, fmt.Errorf("reading gzip: %w", err)
	}
	return fillAll(text, reader)
}

// gzipSize reads the size at the end of the last member.
func gzipSize(packed []byte) int {
	if len(packed) < 4 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(packed[len(packed)-4:]))
}

// zstdDecoders holds the decoders that are not in use. Each keeps a window as large as a body names, up to maxBody,
// which no request counts. Two decoders unpack more than a queue can store.
var zstdDecoders = func() chan *zstd.Decoder {
	decoders := make(chan *zstd.Decoder, 2)
	for range cap(decoders) {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxBody))
		if err != nil {
			panic(err) // An option is wrong.
		}
		decoders <- d
	}
	return decoders
}()

func decodeZstd(packed, text []byte) ([]byte, error) {
	if len(packed) == 0 {
		return text, io.ErrUnexpectedEOF
	}
	d := <-zstdDecoders
	defer func() {
		_ = d.Reset(nil) // It must not refer to the body.
		zstdDecoders <- d
	}()
	if err := d.Reset(bytes.NewReader(packed)); err != nil {
		return text, fmt.Errorf("reading zstd: %w", err)
	}
	return fillAll(text, d)
}

// zstdSize reads the size of the first frame, which may be missing. Readings are then rarely larger than a tenth.
func zstdSize(packed []byte) int {
	var header zstd.Header
	if err := header.Decode(packed); err != nil || !header.HasFCS {
		return 10 * len(packed)
	}
	return int(min(header.FrameContentSize, maxBody))
}

func errBodyTooLarge() error {
	return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
		fmt.Sprintf("The body is larger than %d bytes. Send the uploads in several requests.", maxBody))
}

// receiveError returns the public error of a body that did not arrive.
func receiveError(err error) error {
	var large *http.MaxBytesError
	var public *roomsensor.Error
	switch {
	case errors.As(err, &public):
		return err
	case errors.As(err, &large):
		return errBodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return roomsensor.Invalid("", "The body arrived too slowly. Send it again, or in several requests.")
	}
	return roomsensor.Invalid("", "The body did not arrive completely. Send it again.")
}
