package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"roomsensor/internal/config"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// Receipt says that the stream stored an upload.
type Receipt struct {
	Line           int    `json:"line"` // in the input, from 1
	HardwareID     string `json:"hardware_id"`
	Readings       int    `json:"readings"`
	StreamSequence uint64 `json:"stream_sequence"`
}

// Upload puts JSON Lines of uploads into the stream and gives a receipt for
// each once it is stored. It stops at the first line that cannot be taken:
// those before it are stored. It is for trusted ground, as no team is named.
func Upload(
	ctx context.Context, cfg config.Queue, stream config.Stream, in io.Reader, receipt func(Receipt) error,
) error {
	return withQueue(ctx, cfg, stream, func(ctx context.Context, q *queue.Queue) error {
		// An interrupt must end a read from a terminal too.
		u := &uploader{queue: q, lines: bufio.NewReaderSize(in, lineBytes), receipt: receipt}
		done := make(chan error, 1)
		go func() { done <- u.run(ctx) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return errInterrupted
		}
	})
}

const (
	// lineBytes is an upload of the largest size, a mark to tell a larger one,
	// and the end of its line.
	lineBytes = roomsensor.MaxUploadBytes + 1 + len("\r\n")
	// What is sent before its receipts are waited for: enough to keep the
	// stream busy, little to send again.
	batchUploads = 512
	batchBytes   = 8 << 20
)

type uploader struct {
	queue   *queue.Queue
	lines   *bufio.Reader
	line    int
	receipt func(Receipt) error

	messages []queue.Message
	receipts []Receipt
	bytes    int
}

func (u *uploader) run(ctx context.Context) error {
	for {
		err := u.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(u.flush(ctx), err)
		}
		if err != nil || u.full() {
			if failed := u.flush(ctx); failed != nil || err != nil {
				return failed
			}
		}
	}
}

// full reports whether what was read goes off now: when it is much, and when
// the input has nothing more at the moment.
func (u *uploader) full() bool {
	return len(u.messages) >= batchUploads || u.bytes >= batchBytes || u.lines.Buffered() == 0
}

// read takes one line. The error is io.EOF after the last.
func (u *uploader) read() error {
	u.line++
	raw, err := u.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return u.refuse(fmt.Sprintf("It has more than %d bytes. Send its readings in several uploads.",
			roomsensor.MaxUploadBytes))
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("reading uploads: %w", err)
	}
	text := bytes.TrimSpace(raw)
	if len(text) == 0 {
		return ended(err)
	}
	heading, refusal := upload.Check(text)
	if refusal != nil {
		return u.refuse(refusal.Message)
	}
	u.messages = append(u.messages, queue.Message{HardwareID: heading.HardwareID, Text: bytes.Clone(text)})
	u.receipts = append(u.receipts, Receipt{Line: u.line, HardwareID: heading.HardwareID, Readings: heading.Readings})
	u.bytes += len(text)
	return ended(err)
}

func (u *uploader) refuse(why string) error {
	return refusef("Line %d was not taken. %s What has a receipt is stored; correct the line and send from there.",
		u.line, why)
}

// ended keeps the end of the input of what reading a line said.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return nil
}

// flush stores what was read and gives its receipts, as far as it was stored.
func (u *uploader) flush(ctx context.Context) error {
	sequences, err := u.queue.Publish(ctx, u.messages)
	for i, sequence := range sequences {
		if sequence == 0 {
			return refusef("The queue did not store line %d. What has a receipt is stored; send the rest again: %v",
				u.receipts[i].Line, err)
		}
		u.receipts[i].StreamSequence = sequence
		if err := u.receipt(u.receipts[i]); err != nil {
			return err
		}
	}
	u.messages, u.receipts, u.bytes = u.messages[:0], u.receipts[:0], 0
	return nil
}
