package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
	"roomsensor/internal/upload"
)

// unitTables is the database as a writer reads sources and units.
type unitTables interface {
	source.UnitTables
	// Sources returns those of some sources that exist.
	Sources(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]roomsensor.Source, error)
}

// readUnits reads the messages of sources with their mappings, and what the database knows about the units of all
// results.
func (w *writer) readUnits(ctx context.Context, results []result) (*source.KnownUnits, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := w.readMessages(ctx, results); err != nil {
		return nil, err
	}
	search := source.NewSearch()
	for i := range results {
		d := results[i].delivery
		if id := d.hardwareID(); d.upload != nil && id != nil {
			search.AddHardwareID(*id)
		}
		if m := results[i].message; m != nil {
			search.AddUnits(*d.arrival.Team, m.Units)
		}
	}
	return search.Read(ctx, w.tables)
}

// readMessages reads the messages of sources with the mappings that the sources have now (A10.7).
func (w *writer) readMessages(ctx context.Context, results []result) error {
	ids := map[uuid.UUID]bool{}
	for i := range results {
		if d := results[i].delivery; d.isMessage() {
			ids[*d.arrival.Source] = true
		}
	}
	if len(ids) == 0 {
		return nil
	}
	sources, err := w.tables.Sources(ctx, slices.Collect(maps.Keys(ids)))
	if err != nil {
		return fmt.Errorf("reading sources: %w", err)
	}
	for i := range results {
		if d := results[i].delivery; d.isMessage() {
			results[i].message = w.readMessage(d, sources)
		}
	}
	return nil
}

func (w *writer) readMessage(d *delivery, sources map[uuid.UUID]roomsensor.Source) *source.Message {
	refuse := func(detail string) *source.Message {
		return &source.Message{
			NotMapped: &upload.Refusal{Reason: roomsensor.ReasonNotMapped, Detail: detail}, Payload: d.text,
		}
	}
	s, ok := sources[*d.arrival.Source]
	switch {
	case !ok:
		return refuse("The source was deleted before a worker stored this message.")
	case s.TeamID != *d.arrival.Team:
		return refuse("The message was published for another team than that of its source.")
	}
	mapping, err := w.mappings.Of(&s)
	if err != nil {
		return refuse("The mapping of the source is not valid, set another one: " + err.Error())
	}
	return source.Read(mapping, d.text, &d.arrival)
}

// The most rejects of one message that name their unit, and their size in bytes together. Beyond that, the others have
// one reject for each reason, so that a message of many unknown units cannot fill the database: each reject repeats
// what surrounds the measurements.
const (
	maxUnitRejects     = 1_000
	maxUnitRejectBytes = 4 << 20
)

// resolveMessage is resolve for a message. Each unit is resolved separately (A10.10).
func (r *result) resolveMessage(known *source.KnownUnits) {
	d := r.delivery
	if refusal := r.message.NotMapped; refusal != nil {
		r.reject(refusal.Reason, refusal.Detail, r.message.Payload)
	}
	others := map[roomsensor.Reason]int{}
	var elements []int // of the readings
	bytes := 0
	for _, u := range r.message.Units {
		id := known.HardwareID(*d.arrival.Team, u)
		of := u.Upload()
		resolution := of.Resolve(d.arrival, known.Installations(id))
		elements = append(elements, u.Elements...)
		r.add(of, &resolution)
		if u.Heard() {
			continue
		}
		for i := range resolution.Rejections {
			rejection := &resolution.Rejections[i]
			if len(r.rejects) >= maxUnitRejects || bytes >= maxUnitRejectBytes {
				others[rejection.Reason]++
				continue
			}
			reject := roomsensor.Reject{
				Arrival: d.arrival, Unit: &u.Name, Reason: rejection.Reason, Detail: rejection.Detail,
				Payload: of.Payload(rejection),
			}
			if id != "" {
				reject.HardwareID = &id
			}
			r.rejects = append(r.rejects, reject)
			bytes += len(reject.Payload)
		}
	}
	for _, reason := range roomsensor.Reasons {
		if n := others[reason]; n > 0 {
			r.reject(reason, fmt.Sprintf("%d more units of the message. The payload is the whole message.", n), d.text)
		}
	}
	r.part = func(readings []int) []byte {
		wanted := make([]int, len(readings))
		for i, reading := range readings {
			wanted[i] = elements[reading]
		}
		return r.message.Part(wanted)
	}
}

// add adds the readings of a unit, and its heartbeat.
func (r *result) add(u *upload.Upload, resolution *upload.Resolution) {
	rules := resolution.Rules
	if rules == nil {
		rules = make([]roomsensor.SampleRule, len(u.Readings))
	}
	r.readings, r.devices = append(r.readings, u.Readings...), append(r.devices, resolution.Devices...)
	r.rules = append(r.rules, rules...)
	if resolution.Heartbeat != nil {
		r.heartbeats = append(r.heartbeats, *resolution.Heartbeat)
	}
}
