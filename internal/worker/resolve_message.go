package worker

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
	"roomsensor/internal/upload"
)

// unitTables is the database as a writer reads sources and units.
type unitTables interface {
	// Sources returns those of some sources that exist.
	Sources(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]roomsensor.Source, error)
	// AliasedUnits returns the hardware ids of the units with some distinct aliases. An alias that no unit has is not in
	// the map.
	AliasedUnits(ctx context.Context, aliases []roomsensor.TeamAlias) (map[roomsensor.TeamAlias]string, error)
	// Installations lists all installations of some distinct units (decision 40). A unit that was never installed is not
	// in the map.
	Installations(ctx context.Context, hardwareIDs []string) (map[string][]roomsensor.Installation, error)
}

// knownUnits has what the database knows about the units of some results.
type knownUnits struct {
	aliases       map[roomsensor.TeamAlias]string
	installations map[string][]roomsensor.Installation // by hardware id
}

// set collects distinct values.
type set[V comparable] struct {
	list  []V
	known map[V]bool
}

func (s *set[V]) add(v V) {
	if s.known == nil {
		s.known = map[V]bool{}
	}
	if !s.known[v] {
		s.known[v] = true
		s.list = append(s.list, v)
	}
}

// readUnits reads the messages of sources with their mappings, and what the database knows about the units of all
// results: one statement for sources, one for aliases and one for installations, where any are needed.
func (w *writer) readUnits(ctx context.Context, results []result) (known *knownUnits, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := w.readMessages(ctx, results); err != nil {
		return nil, err
	}
	known = &knownUnits{}
	var aliases set[roomsensor.TeamAlias]
	for i := range results {
		results[i].eachUnit(func(team uuid.UUID, u *source.Unit) {
			if alias, ok := u.Alias(team); ok {
				aliases.add(alias)
			}
		})
	}
	if len(aliases.list) > 0 {
		if known.aliases, err = w.tables.AliasedUnits(ctx, aliases.list); err != nil {
			return nil, fmt.Errorf("reading the aliases of units: %w", err)
		}
	}
	var units set[string]
	for i := range results {
		d := results[i].delivery
		if id := d.hardwareID(); d.upload != nil && id != nil {
			units.add(*id)
		}
		results[i].eachUnit(func(team uuid.UUID, u *source.Unit) {
			if id := u.HardwareID(team, known.aliases); id != "" {
				units.add(id)
			}
		})
	}
	if len(units.list) > 0 {
		if known.installations, err = w.tables.Installations(ctx, units.list); err != nil {
			return nil, fmt.Errorf("reading the installations of units: %w", err)
		}
	}
	return known, nil
}

// eachUnit calls do for each unit of a message.
func (r *result) eachUnit(do func(team uuid.UUID, u *source.Unit)) {
	if r.message == nil {
		return
	}
	for _, u := range r.message.Units {
		do(*r.delivery.arrival.Team, u)
	}
}

// readMessages reads the messages of sources with the mappings that the sources have now (A10.7).
func (w *writer) readMessages(ctx context.Context, results []result) error {
	var ids set[uuid.UUID]
	for i := range results {
		if d := results[i].delivery; d.isMessage() {
			ids.add(*d.arrival.Source)
		}
	}
	if len(ids.list) == 0 {
		return nil
	}
	sources, err := w.tables.Sources(ctx, ids.list)
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

// addRules adds the rules of the readings that were added last.
func (r *result) addRules(rules []roomsensor.SampleRule) {
	if rules == nil && r.rules == nil {
		return
	}
	before := len(r.readings) - len(rules)
	if rules == nil {
		before = len(r.readings)
	}
	r.rules = append(r.rules, make([]roomsensor.SampleRule, before-len(r.rules))...)
	r.rules = append(r.rules, rules...)
}

// resolveMessage is resolve for a message. Each unit is resolved separately (A10.10).
func (r *result) resolveMessage(known *knownUnits) {
	d := r.delivery
	if refusal := r.message.NotMapped; refusal != nil {
		r.reject(refusal.Reason, refusal.Detail, r.message.Payload)
	}
	others := map[roomsensor.Reason]int{}
	var elements []int // of the readings
	bytes := 0
	for _, u := range r.message.Units {
		id := u.HardwareID(*d.arrival.Team, known.aliases)
		of := u.Upload()
		resolution := of.Resolve(d.arrival, known.installations[id])
		elements = append(elements, u.Elements...)
		r.readings, r.devices = append(r.readings, of.Readings...), append(r.devices, resolution.Devices...)
		r.addRules(resolution.Rules)
		if resolution.Heartbeat != nil {
			r.heartbeats = append(r.heartbeats, *resolution.Heartbeat)
		}
		for i := range resolution.Rejections {
			rejection := &resolution.Rejections[i]
			switch {
			case u.Heard():
			case len(r.rejects) >= maxUnitRejects || bytes >= maxUnitRejectBytes:
				others[rejection.Reason]++
			default:
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
