package send

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"roomsensor/client"
	"roomsensor/internal/process"
	"roomsensor/internal/simulate"
)

// The least with which a request is sent: far below the 16 MiB that a receiver accepts, so that a retry is cheap.
const (
	requestBytes   = 2 << 20
	requestUploads = 200
)

// receiverSink posts uploads to a receiver and retries requests that it could not accept.
type receiverSink struct {
	receiver *client.Receiver
	body     []byte
	uploads  int                  // in body
	stored   client.UploadReceipt // the sum of all
}

// NewReceiverSink returns a sink that posts uploads to a receiver.
func NewReceiverSink(to *client.Receiver) Sink { return &receiverSink{receiver: to} }

func (s *receiverSink) Send(ctx context.Context, u *simulate.Upload) error {
	s.body = append(u.AppendJSON(s.body), '\n')
	s.uploads++
	if s.uploads < requestUploads && len(s.body) < requestBytes {
		return nil
	}
	return s.Flush(ctx)
}

func (s *receiverSink) Flush(ctx context.Context) error {
	if s.uploads == 0 {
		return nil
	}
	receipt, err := s.receiver.Upload(ctx, s.body)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code != "" {
		return process.Refusef("The receiver refused the uploads: %v", err)
	}
	if err != nil {
		return process.Refusef("The uploads were not confirmed. Check that the receiver runs and that --to is its URL: %v",
			err)
	}
	s.body, s.uploads = s.body[:0], 0
	s.stored.Stored += receipt.Stored
	s.stored.Readings += receipt.Readings
	s.stored.IgnoredFields = append(s.stored.IgnoredFields, receipt.IgnoredFields...)
	slices.Sort(s.stored.IgnoredFields)
	s.stored.IgnoredFields = slices.Compact(s.stored.IgnoredFields)
	return nil
}

// summary says what the receiver has confirmed.
func (s *receiverSink) summary() string {
	text := fmt.Sprintf("the receiver confirmed %d uploads with %d readings", s.stored.Stored, s.stored.Readings)
	if len(s.stored.IgnoredFields) > 0 {
		text += ", and ignored the fields " + strings.Join(s.stored.IgnoredFields, ", ")
	}
	return text
}
