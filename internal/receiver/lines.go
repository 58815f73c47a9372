package receiver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

const (
	// lineBuffer has room for the largest upload and some white space.
	lineBuffer = roomsensor.MaxUploadBytes + 64<<10
	// groupLines and groupBytes limit what is published at once.
	groupLines = 512
	groupBytes = 8 << 20
)

// Receipt reports the result of one line.
type Receipt struct {
	Line       int    `json:"line"`
	HardwareID string `json:"hardware_id,omitempty"`
	Readings   *int   `json:"readings,omitempty"`
	// IgnoredFields are the names of unknown members (decision 46 a); nil if the line was refused.
	IgnoredFields  []string `json:"ignored_fields,omitzero"`
	StreamSequence uint64   `json:"stream_sequence,omitempty"`
	Error          string   `json:"error,omitempty"` // a sentence; empty if the stream stored the upload
}

// ErrLinesRefused reports that some lines are not uploads. Their receipts give the reason.
var ErrLinesRefused = errors.New("some lines are not uploads")

// ErrQueueRefused reports that the queue failed. The receipts show which lines it did not confirm.
var ErrQueueRefused = errors.New("the queue did not store every line")

// UploadLines publishes JSON Lines of uploads, like a trusted publisher, and reports one receipt per line that is not
// blank, in the order of the lines. A line that is not an upload does not stop the others; the error is then
// ErrLinesRefused. A failure of the queue stops it with ErrQueueRefused. As in split, a byte order mark is ignored.
func UploadLines(ctx context.Context, q *queue.Queue, r io.Reader, report func(Receipt) error) error {
	u := uploader{queue: q, report: report}
	lines := bufio.NewReaderSize(r, lineBuffer)
	for {
		text, long, err := readLine(lines)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return fmt.Errorf("reading uploads: %w", err)
		}
		u.add(text, long)
		if end || u.full() || lines.Buffered() == 0 { // A pause of the sender must not delay its lines.
			if err := u.flush(ctx); err != nil {
				return err
			}
		}
		if end {
			return u.verdict()
		}
	}
}

// readLine reads a line. long reports a line that does not fit into the buffer; its text is incomplete. The text is
// valid until the next read.
func readLine(lines *bufio.Reader) (text []byte, long bool, err error) {
	text, err = lines.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = lines.ReadSlice('\n')
	}
	return text, long, err //nolint:wrapcheck // Wrapped by the caller.
}

// uploader is one call of UploadLines. It collects a group of lines and publishes them together.
type uploader struct {
	queue  *queue.Queue
	report func(Receipt) error

	line     int
	receipts []Receipt
	messages []queue.Message // of the receipts without an error
	bytes    int
	refused  bool
}

func (u *uploader) add(text []byte, long bool) {
	u.line++
	if u.line == 1 {
		text = bytes.TrimPrefix(text, byteOrderMark)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 && !long {
		return
	}
	if long {
		u.refuse(fmt.Sprintf("The upload is longer than %d bytes. Send the readings in several uploads.",
			roomsensor.MaxUploadBytes))
		return
	}
	heading, fault := upload.Check(text)
	if fault != nil {
		u.refuse(fault.Message)
		return
	}
	u.receipts = append(u.receipts, Receipt{
		Line: u.line, HardwareID: heading.HardwareID, Readings: &heading.Readings, IgnoredFields: heading.Ignored.Names(),
	})
	u.messages = append(u.messages, queue.Message{HardwareID: heading.HardwareID, Text: bytes.Clone(text)})
	u.bytes += len(text)
}

func (u *uploader) refuse(why string) {
	u.refused = true
	u.receipts = append(u.receipts, Receipt{Line: u.line, Error: why})
}

func (u *uploader) full() bool {
	return len(u.receipts) >= groupLines || u.bytes >= groupBytes
}

// flush publishes the group and reports its receipts.
func (u *uploader) flush(ctx context.Context) error {
	sequences, failed := u.queue.Publish(ctx, u.messages)
	next := 0
	for _, receipt := range u.receipts {
		if receipt.Error == "" {
			receipt.StreamSequence = sequences[next]
			if next++; receipt.StreamSequence == 0 {
				receipt.Error = "The queue did not confirm it. Send it again."
			}
		}
		if err := u.report(receipt); err != nil {
			return fmt.Errorf("reporting a receipt: %w", err)
		}
	}
	u.receipts, u.messages, u.bytes = u.receipts[:0], nil, 0
	if failed != nil {
		return fmt.Errorf("%w: %w", ErrQueueRefused, failed)
	}
	return nil
}

func (u *uploader) verdict() error {
	if u.refused {
		return ErrLinesRefused
	}
	return nil
}
