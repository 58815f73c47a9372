package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
)

const (
	// writeTimeout bounds one transaction. It leaves the statements of a batch
	// their own limits, and the queue's AckWait some room above.
	writeTimeout = 45 * time.Second
	// pingTimeout is how long a database may take to show that it is there.
	pingTimeout = 3 * time.Second
)

// lander brings deliveries into the tables, whole where it can, in parts where
// it must.
type lander struct {
	units Units
	write func(context.Context, roomsensor.Batch) error
	ping  func(context.Context) error
	log   zerolog.Logger
}

// land stores what became of deliveries and marks those that are stored. Its
// error is of the rest, and may pass later. What the database refuses for good
// is found by halving and becomes a reject; what is too much for it at once is
// stored in parts and never a reject.
func (l *lander) land(ctx context.Context, deliveries []*delivery) ([]*outcome, error) {
	units, err := l.installations(ctx, deliveries)
	if err != nil {
		return nil, err
	}
	outcomes := route(deliveries, units)
	return outcomes, l.landAll(ctx, outcomes)
}

func (l *lander) installations(
	ctx context.Context, deliveries []*delivery,
) (map[string][]roomsensor.Installation, error) {
	ids := unitsOf(deliveries)
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // No unit is known of none.
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	units, err := l.units.Installations(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("finding the devices of uploads: %w", err)
	}
	return units, nil
}

func (l *lander) landAll(ctx context.Context, outcomes []*outcome) error {
	err := l.store(ctx, assemble(outcomes))
	switch {
	case err == nil:
		for _, o := range outcomes {
			o.stored = true
		}
		return nil
	case !divisible(err):
		return err
	case len(outcomes) == 1:
		return l.landOne(ctx, outcomes[0])
	}
	half := len(outcomes) / 2
	if err := l.landAll(ctx, outcomes[:half]); err != nil {
		return err
	}
	return l.landAll(ctx, outcomes[half:])
}

// landOne stores the rows of one upload in parts, and at last what else became
// of it.
func (l *lander) landOne(ctx context.Context, o *outcome) error {
	refused, err := l.landRows(ctx, o.rows)
	if err != nil {
		return err
	}
	o.rejectRows(refused)
	rest := roomsensor.Batch{Rejects: o.rejects}
	if o.seen != nil {
		rest.Seen = []roomsensor.DeviceSeen{*o.seen}
	}
	err = l.store(ctx, rest)
	if errors.Is(err, roomsensor.ErrNotStorable) {
		l.log.Warn().Err(err).Uint64("stream_sequence", o.arrival.Sequence).Msg("the database refused an upload for good")
		o.rejectWhole()
		err = l.store(ctx, roomsensor.Batch{Rejects: o.rejects})
	}
	o.stored = err == nil
	return err
}

// landRows stores rows by halves and returns those that were refused for good.
func (l *lander) landRows(ctx context.Context, rows []row) (refused []row, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	err = l.store(ctx, roomsensor.Batch{Rows: unite(measurements(rows))})
	switch {
	case err == nil:
		return nil, nil
	case len(rows) == 1 && errors.Is(err, roomsensor.ErrNotStorable):
		l.log.Warn().Err(err).Stringer("device_id", rows[0].DeviceID).Time("measured_at", rows[0].MeasuredAt).
			Msg("the database refused a reading for good")
		return rows, nil
	case len(rows) == 1 || !divisible(err):
		return nil, err
	}
	half := len(rows) / 2
	first, err := l.landRows(ctx, rows[:half])
	if err != nil {
		return nil, err
	}
	second, err := l.landRows(ctx, rows[half:])
	return append(slices.Clip(first), second...), err
}

func measurements(rows []row) []roomsensor.DeviceMeasurement {
	list := make([]roomsensor.DeviceMeasurement, len(rows))
	for i := range rows {
		list[i] = rows[i].DeviceMeasurement
	}
	return list
}

// divisible reports whether parts of a batch may fare better.
func divisible(err error) bool {
	return errors.Is(err, roomsensor.ErrNotStorable) || errors.Is(err, roomsensor.ErrTooMuch)
}

// store writes a batch. One that runs out of time while the database is there
// was too much for it.
func (l *lander) store(ctx context.Context, b roomsensor.Batch) error {
	bounded, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := l.write(bounded, b)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil && l.answers(ctx) {
		return fmt.Errorf("%w: %w", roomsensor.ErrTooMuch, err)
	}
	return err
}

func (l *lander) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return l.ping(ctx) == nil
}
