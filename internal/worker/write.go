package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
)

const (
	// writeTimeout bounds one transaction. It is longer than the limits of its statements and shorter than the queue's
	// AckWait.
	writeTimeout = 45 * time.Second
	// pingTimeout bounds the check whether a database responds that took too long for a transaction.
	pingTimeout = 3 * time.Second
)

// tables is the database as a writer uses it.
type tables interface {
	unitTables
	// WriteBatch stores a batch in one transaction and returns the number of changed readings. After
	// roomsensor.ErrRefused a part of the batch may succeed; if it is roomsensor.ErrNotStorable as well, another part
	// never will. After every other error the batch may succeed later.
	WriteBatch(ctx context.Context, batch roomsensor.Batch) (changed int64, err error)
	Ping(ctx context.Context) error
}

// writer stores deliveries: all of a batch in one transaction, or in parts where the database refuses it.
type writer struct {
	tables   tables
	log      zerolog.Logger
	outcomes *outcomes   // nil in a replay of a reject
	chunks   *chunkLimit // nil in a replay of an operator, who may create any number of chunks
	mappings *source.Mappings
	changed  prometheus.Counter // readings; nil in a replay
}

// write stores deliveries and returns a result for each of them, in the order of group. Data that the database
// permanently refuses becomes a reject; a batch that it refuses otherwise is stored in parts. The error belongs to the
// deliveries whose result is not stored: they may succeed later. It is a roomsensor.ErrRefused if the database refused
// all of them.
func (w *writer) write(ctx context.Context, deliveries []*delivery) ([]result, error) {
	groups := w.group(deliveries)
	results, err := w.resolve(ctx, slices.Concat(groups[:]...))
	if err != nil {
		return results, err
	}
	var refused error
	from := 0
	for _, group := range groups {
		to := from + len(group)
		err := w.writeUploads(ctx, results[from:to])
		if err != nil && !isRefused(err) {
			return results, err
		}
		refused, from = cmp.Or(refused, err), to
	}
	return results, refused
}

// group divides deliveries into groups that share no transaction, so that refusals in one do not use up the budget of
// another: first those that nothing is known against, then those of suspects, then those that were delivered often.
func (w *writer) group(deliveries []*delivery) (groups [3][]*delivery) {
	for _, d := range deliveries {
		i := 0
		switch {
		case d.often():
			i = 2
		case w.outcomes.suspect(d):
			i = 1
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

// writeUploads stores uploads, in several transactions if they have too many readings: a message of a source may have
// many times those that its size suggested. Its error is that of the first transaction that failed.
func (w *writer) writeUploads(ctx context.Context, results []result) (failed error) {
	budget := &refusalBudget{left: maxRefusals}
	for len(results) > 0 {
		n := firstOf(results, maxTransactionReadings)
		err := w.writeTogether(ctx, results[:n], budget)
		if failed = cmp.Or(failed, err); err != nil && !isRefused(err) {
			return err
		}
		results = results[n:]
	}
	return failed
}

// writeTogether stores uploads by bisection.
func (w *writer) writeTogether(ctx context.Context, results []result, budget *refusalBudget) error {
	return bisect(0, len(results), budget, func(from, to int) error {
		part := results[from:to]
		err := w.commit(ctx, assemble(part), part[0].delivery.often())
		for i := range part {
			part[i].stored = err == nil
		}
		if err == nil && w.outcomes != nil {
			w.outcomes.countStored(part)
		}
		return err
	}, func(from, to int, err error) error {
		if to-from > 1 {
			return err
		}
		return w.writeParts(ctx, &results[from])
	})
}

// maxTransactionReadings is from how many readings on a transaction gets no more uploads: more than a batch of uploads
// has, whose last one may have 10,000 readings.
const maxTransactionReadings = 2 * capReadings

// firstOf returns how many of the first results belong to one transaction: until they have a number of readings or
// more.
func firstOf(results []result, most int) int {
	readings := 0
	for i := range results {
		if readings >= most {
			return i
		}
		readings += len(results[i].readings)
	}
	return len(results)
}

// resolve assigns the readings of deliveries to devices. It returns a result for each delivery, also with an error.
func (w *writer) resolve(ctx context.Context, deliveries []*delivery) ([]result, error) {
	results := make([]result, len(deliveries))
	for i, d := range deliveries {
		results[i].delivery = d
	}
	known, err := w.readUnits(ctx, results)
	if err != nil {
		return results, err
	}
	for i := range results {
		results[i].resolve(known)
	}
	if w.chunks == nil {
		return results, nil
	}
	return results, w.chunks.apply(ctx, results)
}

// refusalBudget limits how often the database refuses parts of a batch, or of an upload, until the rest is not split
// further.
type refusalBudget struct {
	left  int
	until time.Time // there is no limit before
}

func (b *refusalBudget) spent() bool { return b.left <= 0 && !time.Now().Before(b.until) }

// bisect writes the elements [from, to), and their halves where the database refuses them all at once. It calls refused
// for a single element that is refused, with the error, and continues if refused returns an ErrRefused. It stops at any
// other error. Each single element takes one of the budget, except those that become rejects because they are refused
// permanently. Once the budget is spent, bisect calls refused for what is left without splitting it.
func bisect(
	from, to int, budget *refusalBudget, write func(from, to int) error, refused func(from, to int, err error) error,
) error {
	err := write(from, to)
	switch {
	case !isRefused(err):
		return err
	case to-from == 1:
		failed := refused(from, to, err)
		if failed != nil || !errors.Is(err, roomsensor.ErrNotStorable) {
			budget.left--
		}
		return failed
	case budget.spent():
		return refused(from, to, err)
	}
	middle := from + (to-from)/2
	first := bisect(from, middle, budget, write, refused)
	if first != nil && !isRefused(first) {
		return first
	}
	return cmp.Or(bisect(middle, to, budget, write, refused), first)
}

func isRefused(err error) bool { return errors.Is(err, roomsensor.ErrRefused) }

// writeParts stores one upload in parts: first its readings, by bisection, then its heartbeat and rejects. Refused
// readings, and then an upload whose heartbeat and rejects are refused, become a reject if that is final.
func (w *writer) writeParts(ctx context.Context, r *result) error {
	final := w.finality(r.delivery)
	err := w.writeReadings(ctx, r, final)
	if err == nil {
		err = w.writeRest(ctx, r, final)
	}
	r.stored = err == nil
	if w.outcomes == nil {
		return err
	}
	switch {
	case isRefused(err):
		w.log.Warn().Err(err).Uint64("stream_sequence", r.delivery.arrival.Sequence).
			Int("deliveries", r.delivery.deliveries).Msg("could not store an upload that the database refused")
		w.outcomes.countRefused(r.delivery)
	case r.stored && r.notStorable():
		w.outcomes.countRefused(r.delivery)
	case r.stored:
		w.outcomes.countStored([]result{*r})
	}
	return err
}

// writeReadings stores the readings of one upload by bisection, and rejects those that are refused.
func (w *writer) writeReadings(ctx context.Context, r *result, final finality) error {
	if r.resolved() == 0 {
		return nil
	}
	budget := &refusalBudget{left: maxRefusals}
	switch {
	case w.outcomes == nil:
		budget.left = len(r.devices) // An operator who replays a reject waits for all of it.
	case final == rejectAll:
		began := time.Now()
		budget.until = began.Add(w.outcomes.splittable())
		defer func() { w.outcomes.countSplitting(time.Since(began)) }()
	}
	var refused []int
	var cause error
	err := bisect(0, len(r.devices), budget, func(from, to int) error {
		rows := r.rows(nil, from, to)
		if len(rows) == 0 {
			return nil
		}
		return w.commit(ctx, batchOf(rows), r.delivery.often())
	}, func(from, to int, err error) error {
		if !final.rejects(err) || (to-from > 1 && final != rejectAll) {
			return err
		}
		w.log.Warn().Err(err).Uint64("stream_sequence", r.delivery.arrival.Sequence).Int("readings", to-from).
			Stringer("device_id", r.devices[from]).Time("measured_at", r.readings[from].MeasuredAt).
			Msg("rejected readings that the database refused")
		for i := from; i < to; i++ {
			if r.devices[i] != uuid.Nil {
				refused = append(refused, i)
			}
		}
		cause = err
		return nil
	})
	if err == nil {
		r.rejectRefused(refused, cause)
	}
	return err
}

// writeRest stores the heartbeat and the rejects of one upload, or one reject of the whole upload if they are refused.
func (w *writer) writeRest(ctx context.Context, r *result, final finality) error {
	rest := roomsensor.Batch{Rejects: r.rejects, Seen: mergeHeartbeats(r.heartbeats)}
	slices.SortFunc(rest.Rejects, compareRejects)
	err := w.commit(ctx, rest, r.delivery.often())
	if final.rejects(err) {
		w.log.Warn().Err(err).Uint64("stream_sequence", r.delivery.arrival.Sequence).
			Msg("rejected an upload that the database refused")
		r.rejectWhole(err)
		err = w.commit(ctx, roomsensor.Batch{Rejects: r.rejects}, r.delivery.often())
	}
	return err
}

// commit writes a batch in one transaction. These errors mean that the database refused the batch: a timeout while the
// database responds, and an ErrBlocked of uploads that were delivered often.
func (w *writer) commit(ctx context.Context, b roomsensor.Batch, often bool) error {
	bounded, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	changed, err := w.tables.WriteBatch(bounded, b)
	if w.changed != nil {
		w.changed.Add(float64(changed))
	}
	timedOut := err != nil && bounded.Err() != nil && ctx.Err() == nil && w.responds(ctx)
	if timedOut || (often && errors.Is(err, roomsensor.ErrBlocked)) {
		return fmt.Errorf("%w: %w", roomsensor.ErrRefused, err)
	}
	return err
}

func (w *writer) responds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return w.tables.Ping(ctx) == nil
}

// assemble returns the batch of some results. Everything in it is sorted by its key, so that workers that write the
// same keys take their locks in the same order.
func assemble(results []result) (b roomsensor.Batch) {
	n := 0
	for i := range results {
		n += len(results[i].devices)
	}
	rows := make([]roomsensor.DeviceMeasurement, 0, n)
	var seen []roomsensor.DeviceHeartbeat
	var rejects []roomsensor.Reject
	for i := range results {
		r := &results[i]
		rows = r.rows(rows, 0, len(r.devices))
		seen = append(seen, r.heartbeats...)
		rejects = append(rejects, r.rejects...)
	}
	b = batchOf(rows)
	b.Seen, b.Rejects = mergeHeartbeats(seen), rejects
	slices.SortFunc(b.Rejects, compareRejects)
	// A batch may have a message and its redelivery, but one statement may write a key only once.
	b.Rejects = slices.CompactFunc(b.Rejects, func(a, b roomsensor.Reject) bool { return compareRejects(a, b) == 0 })
	return b
}

// batchOf returns the batch of some measurements, whose memory it uses.
func batchOf(rows []roomsensor.DeviceMeasurement) (b roomsensor.Batch) {
	rows = slices.DeleteFunc(rows, func(row roomsensor.DeviceMeasurement) bool {
		if row.Rule == roomsensor.NoSample {
			return false
		}
		b.Samples = append(b.Samples, row)
		return true
	})
	b.Rows, b.Samples = merge(rows, sameRow), merge(b.Samples, sameSample)
	return b
}

// merge sorts measurements by device and time, and merges those that are the same row of a table (late-merge rule,
// decision 37), because one statement may write a key only once.
func merge(
	rows []roomsensor.DeviceMeasurement, same func(a, b *roomsensor.DeviceMeasurement) bool,
) []roomsensor.DeviceMeasurement {
	slices.SortFunc(rows, roomsensor.CompareMeasurements)
	merged := rows[:0]
	for _, next := range rows {
		if n := len(merged); n > 0 && same(&merged[n-1], &next) {
			merged[n-1].Measurement = roomsensor.Merge(merged[n-1].Measurement, next.Measurement)
			merged[n-1].Rule = max(merged[n-1].Rule, next.Rule)
			continue
		}
		merged = append(merged, next)
	}
	return merged
}

func sameRow(a, b *roomsensor.DeviceMeasurement) bool {
	return a.DeviceID == b.DeviceID && a.Bucket().Equal(b.Bucket())
}

func sameSample(a, b *roomsensor.DeviceMeasurement) bool {
	return a.DeviceID == b.DeviceID && a.MeasuredAt.Equal(b.MeasuredAt)
}

// mergeHeartbeats sorts heartbeats by device and merges those of the same device.
func mergeHeartbeats(list []roomsensor.DeviceHeartbeat) []roomsensor.DeviceHeartbeat {
	slices.SortFunc(list, func(a, b roomsensor.DeviceHeartbeat) int {
		return roomsensor.CompareIDs(a.DeviceID, b.DeviceID)
	})
	merged := list[:0]
	for _, next := range list {
		if n := len(merged); n > 0 && merged[n-1].DeviceID == next.DeviceID {
			mergeHeartbeat(&merged[n-1], &next)
			continue
		}
		merged = append(merged, next)
	}
	return merged
}

// mergeHeartbeat keeps the newest arrival, and signal and firmware of the newest arrivals that carry them (decision
// 39). For arrivals in the same microsecond it compares the values, as the database does, so that the order has no
// effect.
func mergeHeartbeat(into, from *roomsensor.DeviceHeartbeat) {
	if from.LastSeenAt.After(into.LastSeenAt) {
		into.LastSeenAt = from.LastSeenAt
	}
	if from.Signal != nil && (into.Signal == nil ||
		cmp.Or(from.SignalAt.Compare(into.SignalAt), compareSignals(from.Signal, into.Signal)) > 0) {
		into.Signal, into.SignalAt = from.Signal, from.SignalAt
	}
	if from.Firmware != nil && (into.Firmware == nil ||
		cmp.Or(from.FirmwareAt.Compare(into.FirmwareAt), cmp.Compare(*from.Firmware, *into.Firmware)) > 0) {
		into.Firmware, into.FirmwareAt = from.Firmware, from.FirmwareAt
	}
}

// compareSignals orders a missing value before every other one.
func compareSignals(a, b *roomsensor.Signal) int {
	return cmp.Or(comparePointers(a.RSSI, b.RSSI), comparePointers(a.Bars, b.Bars))
}

func comparePointers[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(*a, *b)
}

func compareRejects(a, b roomsensor.Reject) int {
	return cmp.Or(a.Arrival.At.Compare(b.Arrival.At),
		cmp.Compare(a.Arrival.Sequence, b.Arrival.Sequence), cmp.Compare(a.Reason, b.Reason),
		comparePointers(a.Unit, b.Unit))
}

// ReplayStore is the database as Replay uses it.
type ReplayStore interface {
	unitTables
	// WriteReplay stores a batch without its rejects, in one transaction, and sets the time of the replay. Its errors are
	// those of WriteBatch.
	WriteReplay(ctx context.Context, rejectID uuid.UUID, batch roomsensor.Batch) error
	Ping(ctx context.Context) error
}

// TeamReplayStore is the database as ReplayForTeam uses it.
type TeamReplayStore interface {
	ReplayStore
	chunks
}

// replayTables writes batches as the replay of a reject.
type replayTables struct {
	ReplayStore
	reject uuid.UUID
}

func (t replayTables) WriteBatch(ctx context.Context, b roomsensor.Batch) (int64, error) {
	return 0, t.WriteReplay(ctx, t.reject, b)
}

// Replay resolves and stores a reject again, as a worker does, with its first arrival and under its team (decision 39).
// It returns what it could not store, with the reasons: nothing if all of it was stored. The rest makes no second
// reject, but the time of the replay is set (decision 41). It may create any number of chunks.
func Replay(ctx context.Context, store ReplayStore, reject roomsensor.Reject) (rest []roomsensor.Reject, err error) {
	return replay(ctx, store, nil, reject)
}

// ReplayForTeam is Replay for people of a team: what they replay may create as many chunks as an upload (decision 53
// c).
func ReplayForTeam(ctx context.Context, store TeamReplayStore, reject roomsensor.Reject) ([]roomsensor.Reject, error) {
	return replay(ctx, store, &chunkLimit{store: store}, reject)
}

func replay(
	ctx context.Context, store ReplayStore, limit *chunkLimit, reject roomsensor.Reject,
) (rest []roomsensor.Reject, err error) {
	w := writer{
		tables: replayTables{store, reject.ID}, log: zerolog.Nop(), chunks: limit, mappings: &source.Mappings{},
	}
	var unit string
	if reject.HardwareID != nil {
		unit = *reject.HardwareID
	}
	results, err := w.write(ctx, []*delivery{parsed(reject.Arrival, unit, reject.Payload)})
	if err != nil {
		return nil, fmt.Errorf("replaying a reject: %w", err)
	}
	return results[0].rejects, nil
}
