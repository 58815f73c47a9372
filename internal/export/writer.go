package export

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/compress"
	"roomsensor/internal/httpedge"
)

// chunkBytes is the number of bytes of a body that are collected before they are sent.
const chunkBytes = 32 << 10

// writer sends the body of an export in chunks.
type writer struct {
	sink       func(p []byte) error // takes the chunks in place of the response; nil if they are sent
	response   *echo.Response
	compressed *compress.Writer // to response; nil if the body is not compressed
	chunk      []byte           // not sent yet; an encoder of rows appends to it and calls flushFull
	recheck    func() error     // of Request; nil means that nobody checks the right to the export
	checked    time.Time        // zero before the first chunk: what precedes it may take long
}

// recheckEvery is how often the right to an export is checked while it is sent. A revocation takes effect within 5
// seconds (decision 24 k): this time, and that for which a key may be kept in memory.
const recheckEvery = 2 * time.Second

func newWriter(response *echo.Response, coding compress.Coding) *writer {
	w := &writer{response: response}
	if coding != compress.Identity {
		w.compressed = compress.NewWriter(response, coding)
	}
	return w
}

// send sends a whole body. On an error the body lacks its end, and fail breaks the connection.
func (w *writer) send(ctx context.Context, body func(ctx context.Context, w *writer) error) error {
	buffer := httpedge.GetBuffer()
	defer func() { *buffer = w.chunk; httpedge.PutBuffer(buffer) }()
	w.chunk = *buffer
	err := body(ctx, w)
	if err == nil {
		err = w.flush()
	}
	if w.compressed == nil {
		return err
	}
	if err != nil {
		w.compressed.Abandon()
		return err
	}
	if err := w.compressed.Close(); err != nil {
		return fmt.Errorf("ending a compressed export: %w: %w", ErrNotReceived, err)
	}
	return nil
}

// Write adds to the body, for encoders that write instead of appending.
func (w *writer) Write(p []byte) (int, error) {
	w.chunk = append(w.chunk, p...)
	return len(p), w.flushFull()
}

// flushFull sends the chunk if it is full.
func (w *writer) flushFull() error {
	if len(w.chunk) < chunkBytes {
		return nil
	}
	return w.flush()
}

// flush sends the chunk.
func (w *writer) flush() error {
	if w.recheck != nil && time.Since(w.checked) >= recheckEvery {
		if err := w.recheck(); err != nil {
			return err
		}
		w.checked = time.Now()
	}
	err := w.write(w.chunk)
	w.chunk = w.chunk[:0]
	return err
}

// write sends a part of the body.
func (w *writer) write(p []byte) (err error) {
	if w.sink != nil {
		return w.sink(p)
	}
	if !w.response.Committed {
		// Sending the headers first keeps Go from adding a Content-Length, which HEAD cannot know.
		w.response.WriteHeader(http.StatusOK)
		w.response.Flush()
	}
	if w.compressed != nil {
		_, err = w.compressed.Write(p)
	} else {
		_, err = w.response.Write(p)
	}
	if err != nil {
		return fmt.Errorf("sending an export: %w: %w", ErrNotReceived, err)
	}
	return nil
}

// rowSource has the rows of an export.
type rowSource[Row any] interface {
	// Rows returns how many rows Each has.
	Rows() int
	// Each calls f with every row, which f must not keep, and stops at the first error of f.
	Each(ctx context.Context, f func(*Row) error) error
}

// sendRows calls do with all rows of an export. It returns an error unless there are as many as were counted.
func sendRows[Row any](ctx context.Context, rows rowSource[Row], do func(*Row) error) error {
	sent := 0
	err := rows.Each(ctx, func(row *Row) error {
		sent++
		return do(row)
	})
	if err != nil {
		return fmt.Errorf("reading an export: %w", err)
	}
	if sent != rows.Rows() {
		return fmt.Errorf("an export of %d rows ended after %d", rows.Rows(), sent)
	}
	return nil
}

// rowEncoder appends the rows of an export to a CSV.
type rowEncoder[Row any] interface {
	AppendHeader(dst []byte) []byte
	AppendRow(dst []byte, row *Row) []byte
	AppendEnd(dst []byte) []byte
}

// sendCSV sends all rows of an export.
func sendCSV[Row any](ctx context.Context, w *writer, encoder rowEncoder[Row], rows rowSource[Row]) error {
	w.chunk = encoder.AppendHeader(w.chunk)
	err := sendRows(ctx, rows, func(row *Row) error {
		w.chunk = encoder.AppendRow(w.chunk, row)
		return w.flushFull()
	})
	w.chunk = encoder.AppendEnd(w.chunk)
	return err
}
