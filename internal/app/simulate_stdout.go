package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// lineSink prints uploads as JSON Lines.
type lineSink struct{ out *bufio.Writer }

// NewLineSink prints uploads as JSON Lines.
func NewLineSink(to io.Writer) UploadSink { return &lineSink{bufio.NewWriterSize(to, 1<<16)} }

func (s *lineSink) Send(_ context.Context, _ string, line []byte) error {
	_, err := s.out.Write(line)
	if err == nil {
		err = s.out.WriteByte('\n')
	}
	return explainOutput(err)
}

func (s *lineSink) Flush(context.Context) error { return explainOutput(s.out.Flush()) }

func explainOutput(err error) error {
	if err != nil {
		return fmt.Errorf("printing uploads: %w", err)
	}
	return nil
}
