package api

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/compress"
	"roomsensor/internal/csvenc"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// exportChunk is the number of bytes of CSV that are collected before they are sent.
const exportChunk = 32 << 10

// shape appends one of the two shapes of the CSV.
type shape interface {
	AppendHeader(dst []byte) []byte
	AppendRow(dst []byte, row *roomsensor.ExportRow) []byte
	AppendEnd(dst []byte) []byte
}

// csvStream sends the body of an export in chunks.
type csvStream struct {
	shape      shape
	response   *echo.Response
	compressed *compress.Writer // to response; nil if the body is not compressed
	chunk      []byte
	sent       int // rows
}

func newCSVStream(c *call, plan *exportPlan, coding compress.Coding) *csvStream {
	s := &csvStream{response: c.Response()}
	if plan.wide {
		s.shape = csvenc.NewWide(plan.team, plan.devices)
	} else {
		s.shape = csvenc.NewLong(plan.team)
	}
	if coding != compress.Identity {
		s.compressed = compress.NewWriter(c.Response(), coding)
	}
	return s
}

// send sends the whole body. On an error the body lacks its end, and fail breaks the connection.
func (s *csvStream) send(ctx context.Context, export Export) error {
	if err := s.sendRows(ctx, export); err != nil {
		if s.compressed != nil {
			s.compressed.Abandon()
		}
		return err
	}
	if s.compressed == nil {
		return nil
	}
	if err := s.compressed.Close(); err != nil {
		return fmt.Errorf("ending a compressed export: %w", err)
	}
	return nil
}

func (s *csvStream) sendRows(ctx context.Context, export Export) error {
	buffer := httpedge.GetBuffer()
	defer func() { *buffer = s.chunk; httpedge.PutBuffer(buffer) }()
	s.chunk = s.shape.AppendHeader(*buffer)
	if err := export.Each(ctx, s.add); err != nil {
		return fmt.Errorf("reading an export: %w", err)
	}
	if s.sent != export.Rows() {
		return fmt.Errorf("an export of %d rows ended after %d", export.Rows(), s.sent)
	}
	s.chunk = s.shape.AppendEnd(s.chunk)
	return s.flush()
}

func (s *csvStream) add(row *roomsensor.ExportRow) error {
	s.chunk = s.shape.AppendRow(s.chunk, row)
	s.sent++
	if len(s.chunk) < exportChunk {
		return nil
	}
	return s.flush()
}

// flush sends the chunk.
func (s *csvStream) flush() error {
	if !s.response.Committed {
		// Sending the headers first keeps Go from adding a Content-Length, which HEAD cannot know.
		s.response.WriteHeader(http.StatusOK)
		s.response.Flush()
	}
	var out io.Writer = s.response
	if s.compressed != nil {
		out = s.compressed
	}
	if _, err := out.Write(s.chunk); err != nil {
		return fmt.Errorf("sending an export: %w", err)
	}
	s.chunk = s.chunk[:0]
	return nil
}
