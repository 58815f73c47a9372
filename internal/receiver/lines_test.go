package receiver

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func (b *env) upload(t *testing.T, r io.Reader) (receipts []Receipt, err error) {
	t.Helper()
	err = UploadLines(b.ctx, b.queue, r, func(receipt Receipt) error {
		receipts = append(receipts, receipt)
		return nil
	})
	return receipts, err
}

func TestUploadLines(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	text := "\ufeff" + small + "\n\nhello\n" + second + "\r\n" + small
	receipts, err := b.upload(t, strings.NewReader(text))
	require.ErrorIs(t, err, ErrLinesRefused)
	require.Equal(t, []Receipt{
		{Line: 1, HardwareID: "dev:1", Readings: new(0), IgnoredFields: []string{}, StreamSequence: 1},
		{Line: 3, Error: "The upload is not valid JSON, at byte 1."},
		{Line: 4, HardwareID: "dev:2", Readings: new(1), IgnoredFields: []string{}, StreamSequence: 2},
		{Line: 5, HardwareID: "dev:1", Readings: new(0), IgnoredFields: []string{}, StreamSequence: 3},
	}, receipts)
}

func TestUploadLinesThousands(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	receipts, err := b.upload(t, strings.NewReader(strings.Repeat(small+"\n", 3000)))
	require.NoError(t, err)
	require.Len(t, receipts, 3000)
	for i, receipt := range receipts {
		require.Equal(t, i+1, receipt.Line)
		require.Equal(t, uint64(i+1), receipt.StreamSequence)
	}
}

func TestUploadLinesPause(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	reader, writer := io.Pipe()
	reported := make(chan Receipt)
	done := make(chan error)
	go func() {
		done <- UploadLines(b.ctx, b.queue, reader, func(r Receipt) error {
			reported <- r
			return nil
		})
	}()
	for i := range 3 {
		_, err := io.WriteString(writer, small+"\n")
		require.NoError(t, err)
		require.Equal(t, i+1, (<-reported).Line)
	}
	require.NoError(t, writer.Close())
	require.NoError(t, <-done)
}

func TestUploadLinesLongLine(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	long := strings.Repeat("x", 3<<20)
	wide := small[:len(small)-1] + `,"x":"` + strings.Repeat("x", roomsensor.MaxUploadBytes) + `"}`
	receipts, err := b.upload(t, strings.NewReader(long+"\n"+small+"\n"+wide+"\n"+long))
	require.ErrorIs(t, err, ErrLinesRefused)
	require.Len(t, receipts, 4)
	require.Contains(t, receipts[0].Error, "The upload is longer than 1000000 bytes.")
	require.Equal(t, uint64(1), receipts[1].StreamSequence)
	require.NotEmpty(t, receipts[2].Error)
	require.NotEmpty(t, receipts[3].Error)
}

func TestUploadLinesQueueFailure(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	b.server.Shutdown()
	receipts, err := b.upload(t, strings.NewReader(strings.Repeat(small+"\n", groupLines+1)))
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrLinesRefused)
	require.Len(t, receipts, groupLines)
	require.Equal(t, "The queue did not confirm it. Send it again.", receipts[0].Error)
}

func TestUploadLinesReadAndReportErrors(t *testing.T) {
	t.Parallel()
	b := newEnv(t)
	broken := errors.New("broken")
	_, err := b.upload(t, iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	err = UploadLines(context.Background(), b.queue, strings.NewReader(small), func(Receipt) error { return broken })
	require.ErrorIs(t, err, broken)
	receipts, err := b.upload(t, strings.NewReader(""))
	require.NoError(t, err)
	require.Empty(t, receipts)
}
