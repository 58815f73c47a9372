package world

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

// row is a row of readings.
type row struct {
	roomsensor.Measurement

	ingestedAt time.Time
}

type rejectKey struct {
	receivedAt time.Time
	sequence   uint64
	reason     roomsensor.Reason
}

// content is what the tables have, and the rules of the statements that workers run: ReadingUpsert,
// DeviceHeartbeatUpdate and RejectInsert in queries/. TestTables compares it with the database.
type content struct {
	rows    map[ledger.Key]row
	states  map[uuid.UUID]roomsensor.DeviceHeartbeat
	rejects map[rejectKey]roomsensor.Reject
}

func newContent() *content {
	return &content{
		map[ledger.Key]row{}, map[uuid.UUID]roomsensor.DeviceHeartbeat{}, map[rejectKey]roomsensor.Reject{},
	}
}

// errTwice is the error of a statement that would write a row twice.
var errTwice = errors.New("a batch has a key twice (SQLSTATE 21000)")

// write stores a batch at a time, and returns how many readings changed.
func (c *content) write(b *roomsensor.Batch, now time.Time) (changed int64, err error) {
	seen := map[ledger.Key]bool{}
	for i := range b.Rows {
		key := ledger.KeyOf(b.Rows[i].DeviceID, b.Rows[i].Bucket())
		if seen[key] {
			return 0, fmt.Errorf("%w: %w", roomsensor.ErrRefused, errTwice)
		}
		seen[key] = true
	}
	for i := range b.Rows {
		key := ledger.KeyOf(b.Rows[i].DeviceID, b.Rows[i].Bucket())
		old, exists := c.rows[key]
		if next, written := upsert(old, exists, b.Rows[i].Measurement, now); written {
			c.rows[key] = next
			changed++
		}
	}
	for i := range b.Seen {
		state := c.states[b.Seen[i].DeviceID]
		beat(&state, &b.Seen[i])
		c.states[b.Seen[i].DeviceID] = state
	}
	for _, r := range b.Rejects {
		key := rejectKey{r.Arrival.At, r.Arrival.Sequence, r.Reason}
		if _, ok := c.rejects[key]; !ok {
			c.rejects[key] = r
		}
	}
	return changed, nil
}

// upsert is ReadingUpsert for one row. written reports whether the row is written.
func upsert(old row, exists bool, in roomsensor.Measurement, now time.Time) (next row, written bool) {
	if !exists {
		return row{in, now}, true
	}
	next = row{in, old.ingestedAt}
	if in.MeasuredAt.Equal(old.MeasuredAt) {
		next.Values = greatest(old.Values, in.Values)
	}
	if next.Values != old.Values {
		next.ingestedAt = now
	}
	written = in.MeasuredAt.After(old.MeasuredAt) ||
		in.MeasuredAt.Equal(old.MeasuredAt) && next.Values != old.Values
	return next, written
}

// greatest is greatest() of SQL for each metric: it ignores null.
func greatest(a, b roomsensor.Values) roomsensor.Values {
	for _, m := range roomsensor.Metrics {
		x, ok := b.Get(m)
		if old, has := a.Get(m); ok && (!has || x > old) {
			a.Set(m, x)
		}
	}
	return a
}

// beat is DeviceHeartbeatUpdate for one device.
func beat(state, in *roomsensor.DeviceHeartbeat) {
	state.DeviceID = in.DeviceID
	if in.LastSeenAt.After(state.LastSeenAt) {
		state.LastSeenAt = in.LastSeenAt
	}
	if in.Signal != nil && compareSignals(in, state) > 0 {
		state.Signal, state.SignalAt = in.Signal, in.SignalAt
	}
	if in.Firmware != nil && (state.Firmware == nil ||
		cmp.Or(in.FirmwareAt.Compare(state.FirmwareAt), cmp.Compare(*in.Firmware, *state.Firmware)) > 0) {
		state.Firmware, state.FirmwareAt = in.Firmware, in.FirmwareAt
	}
}

// compareSignals compares (signal_at, rssi_dbm, signal_bars), of which null is the least.
func compareSignals(a, b *roomsensor.DeviceHeartbeat) int {
	if b.Signal == nil {
		return 1
	}
	numbers := func(s *roomsensor.Signal) (rssi int32, bars int16) {
		rssi, bars = math.MinInt32, -1
		if s.RSSI != nil {
			rssi = *s.RSSI
		}
		if s.Bars != nil {
			bars = *s.Bars
		}
		return rssi, bars
	}
	rssi, bars := numbers(a.Signal)
	otherRSSI, otherBars := numbers(b.Signal)
	return cmp.Or(a.SignalAt.Compare(b.SignalAt), cmp.Compare(rssi, otherRSSI), cmp.Compare(bars, otherBars))
}

// tables is the database.
type tables struct {
	*content

	w             *World
	jump          time.Duration // of its clock
	down          bool
	installations map[string][]roomsensor.Installation
	keys          []roomsensor.Key
	never         map[ledger.Key]bool // readings that it refuses permanently
	shares        []roomsensor.StreamShare
}

func (t *tables) setDown(down bool) { t.down = down }

// errDown is the error of a connection that fails. Its kind does not matter to the worker.
var errDown = errors.New("the database is unavailable")

// decide draws what becomes of a transaction.
func (t *tables) decide(p *process, b *roomsensor.Batch) (fate fate) {
	w, plan := t.w, &t.w.plan
	for i := range b.Rows {
		if t.never[ledger.KeyOf(b.Rows[i].DeviceID, b.Rows[i].Bucket())] {
			return fateOf(false, true, roomsensor.ErrNotStorable)
		}
	}
	switch {
	case t.down && w.happens(50):
		return fateOf(false, true, errDown)
	case t.down:
		return fateOf(w.happens(50), false, errDown)
	case w.happens(plan.failWrite):
		return fateOf(false, true, errDown)
	case w.happens(plan.failCommit):
		return fateOf(true, true, errDown)
	case w.happens(plan.hangWrite):
		return fateOf(false, false, nil)
	case w.happens(plan.hangCommit):
		return fateOf(true, false, nil)
	case w.happens(plan.refuseWrite):
		return fateOf(false, true, []error{roomsensor.ErrRefused, roomsensor.ErrBlocked}[w.rng.IntN(2)])
	case w.happens(plan.crashWrite):
		w.kill(p)
		return fateOf(w.happens(50), false, nil)
	}
	return fateOf(true, true, nil)
}

// fate is what becomes of a transaction.
type fate struct {
	commits, answers bool
	err              error
}

func fateOf(commits, answers bool, err error) fate { return fate{commits, answers, err} }

// tablesOf is the connection of a process to the database. Reads see the tables as they are between two steps.
type tablesOf struct {
	p *process
	t *tables
}

// read returns the error of a read.
func (o tablesOf) read() error {
	switch {
	case o.p.isDead():
		return errKilled
	case o.t.down:
		return errDown
	}
	return nil
}

// call runs do as a statement of the process, and returns its error, or that of ctx.
func (o tablesOf) call(ctx context.Context, label string, do func() error) error {
	if err := o.read(); err != nil {
		return err
	}
	done := make(chan error, 1)
	o.p.w.submit(&step{label: o.p.name + origin() + " " + label, from: o.p, do: func() {
		err := o.read()
		if err == nil {
			err = do()
		}
		o.p.reply(func() { done <- err })
	}})
	return o.p.await(ctx, done)
}

func (o tablesOf) WriteBatch(ctx context.Context, b roomsensor.Batch) (changed int64, err error) {
	if err := o.read(); err != nil {
		return 0, err
	}
	// The caller reuses its memory after the end of ctx, and the transaction may still commit then.
	b.Rows, b.Seen, b.Rejects = slices.Clone(b.Rows), slices.Clone(b.Seen), slices.Clone(b.Rejects)
	t, done := o.t, make(chan error, 1)
	o.p.w.submit(&step{label: o.p.name + origin() + " write " + summary(&b), from: o.p, do: func() {
		fate := t.decide(o.p, &b)
		if fate.commits {
			var failed error
			if changed, failed = t.write(&b, time.Now().Add(t.jump)); failed != nil {
				fate.err = failed
			}
		}
		t.w.record("commits %t, answers %t, changed %d: %v", fate.commits, fate.answers, changed, fate.err)
		if fate.answers {
			o.p.reply(func() { done <- fate.err })
		}
	}})
	if err := o.p.await(ctx, done); err != nil {
		return 0, err
	}
	return changed, nil
}

// summary identifies a batch.
func summary(b *roomsensor.Batch) string {
	h := fnv.New32a()
	add := func(x any) { _ = binary.Write(h, binary.LittleEndian, x) } // It never fails.
	for i := range b.Rows {
		add(b.Rows[i].DeviceID)
		add(b.Rows[i].MeasuredAt.UnixMicro())
	}
	for i := range b.Seen {
		add(b.Seen[i].DeviceID)
		add(b.Seen[i].LastSeenAt.UnixMicro())
	}
	for i := range b.Rejects {
		add(b.Rejects[i].Arrival.Sequence)
		add([]byte(b.Rejects[i].Reason))
	}
	return fmt.Sprintf("%d rows, %d devices, %d rejects %08x", len(b.Rows), len(b.Seen), len(b.Rejects), h.Sum32())
}

func (o tablesOf) Ping(context.Context) error { return o.read() }

func (o tablesOf) Installations(ctx context.Context, ids []string) (map[string][]roomsensor.Installation, error) {
	found := map[string][]roomsensor.Installation{}
	slices.Sort(ids)
	return found, o.call(ctx, fmt.Sprint("read ", ids), func() error {
		for _, id := range ids {
			if list, ok := o.t.installations[id]; ok {
				found[id] = list
			}
		}
		return nil
	})
}

func (o tablesOf) AliasedUnits(context.Context, []roomsensor.TeamAlias) (map[roomsensor.TeamAlias]string, error) {
	return nil, o.read()
}

func (o tablesOf) Sources(context.Context, []uuid.UUID) (map[uuid.UUID]roomsensor.Source, error) {
	return nil, o.read()
}

// Chunks returns one chunk that has all readings, so that uploads create none.
func (o tablesOf) Chunks(context.Context) (roomsensor.Chunks, error) {
	return roomsensor.Chunks{
		Interval: 7 * 24 * time.Hour, Ranges: []roomsensor.Window{{To: roomsensor.Forever}},
	}, o.read()
}

func (o tablesOf) OpenChunks(_ context.Context, _ uuid.UUID, uploads [][]time.Time, _ int) ([]bool, error) {
	return slices.Repeat([]bool{true}, len(uploads)), o.read()
}

func (o tablesOf) RecordStreamShares(ctx context.Context, shares []roomsensor.StreamShare) error {
	return o.call(ctx, fmt.Sprint("shares ", shares), func() error {
		o.t.shares = append(o.t.shares, shares...)
		return nil
	})
}

func (o tablesOf) StreamShares(context.Context) ([]roomsensor.StreamShare, error) {
	return slices.Clone(o.t.shares), o.read()
}

func (o tablesOf) DeleteStreamShares(ctx context.Context, first uint64, before map[uuid.UUID]uint64) error {
	return o.call(ctx, "delete shares", func() error {
		o.t.shares = slices.DeleteFunc(o.t.shares, func(s roomsensor.StreamShare) bool {
			return s.Sequence < first || s.Sequence < before[s.Team]
		})
		return nil
	})
}

func (o tablesOf) TrimRejects(context.Context, roomsensor.RejectLimits) (roomsensor.RejectTrim, error) {
	return roomsensor.RejectTrim{}, o.read()
}

func (o tablesOf) RecordSources(context.Context, []roomsensor.SourceCount) error { return o.read() }

func (o tablesOf) PurgeFeed(context.Context) error { return o.read() }

func (o tablesOf) IngestKeysByID(_ context.Context, ids []string) (found []roomsensor.Key, err error) {
	for _, key := range o.t.keys {
		if slices.Contains(ids, key.ID) {
			found = append(found, key)
		}
	}
	return found, o.read()
}

func (o tablesOf) IngestKeysAfter(_ context.Context, id string, _ int32) (found []roomsensor.Key, err error) {
	for _, key := range o.t.keys {
		if key.ID > id {
			found = append(found, key)
		}
	}
	return found, o.read()
}

func (o tablesOf) IngestKeyPosition(context.Context) (roomsensor.KeyPosition, error) {
	return roomsensor.KeyPosition{}, o.read()
}

func (o tablesOf) IngestKeysChanged(context.Context, roomsensor.KeyPosition, int32) ([]roomsensor.Key, error) {
	return nil, o.read()
}

// ledgerRows returns the readings in an order that does not change.
func (c *content) ledgerRows() (list []ledger.Row) {
	for key, r := range c.rows {
		list = append(list, ledger.Row{Key: key, Values: r.Values, MeasuredAt: r.MeasuredAt, IngestedAt: r.ingestedAt})
	}
	slices.SortFunc(list, func(a, b ledger.Row) int {
		return cmp.Or(bytes.Compare(a.Device[:], b.Device[:]), cmp.Compare(a.Bucket, b.Bucket))
	})
	return list
}

func (c *content) ledgerRejects() (list []ledger.Reject) {
	for key, r := range c.rejects {
		list = append(list, ledger.Reject{Sequence: key.sequence, Reason: key.reason, Payload: r.Payload})
	}
	return list
}

func (c *content) ledgerStates() (list []ledger.State) {
	for _, s := range c.states {
		state := ledger.State{Device: s.DeviceID, LastSeenAt: s.LastSeenAt}
		if s.Firmware != nil {
			state.Firmware = *s.Firmware
		}
		if s.Signal != nil && s.Signal.RSSI != nil {
			state.RSSI = int(*s.Signal.RSSI)
		}
		list = append(list, state)
	}
	return list
}

func (c *content) total() int { return len(c.rows) }
