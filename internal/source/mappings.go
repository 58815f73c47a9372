package source

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

// maxMappings bounds the compiled mappings in memory, each of up to some 100 KB.
const maxMappings = 1_000

// ErrFormat is the error of a source whose format this process does not know.
var ErrFormat = errors.New("the format is not known")

// Mappings compiles the mappings of sources. It is safe for concurrent use. The zero value is ready.
type Mappings struct {
	mu       sync.Mutex
	bySource map[uuid.UUID]compiled
}

// compiled is the mapping of a source with a format and members that replace those of the format.
type compiled struct {
	format, members string
	mapping         *mapping.Mapping
	err             error
}

// Of returns the mapping of a source as it is now. Its error is that of Compile.
func (m *Mappings) Of(s *roomsensor.Source) (*mapping.Mapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.bySource[s.ID]
	if ok && known.format == s.Format && known.members == s.Mapping {
		return known.mapping, known.err
	}
	if len(m.bySource) >= maxMappings || m.bySource == nil {
		m.bySource = map[uuid.UUID]compiled{}
	}
	known = compiled{format: s.Format, members: s.Mapping}
	known.mapping, known.err = Compile(s.Format, s.Mapping)
	m.bySource[s.ID] = known
	return known.mapping, known.err
}

// Compile returns the mapping of a format with the members of a JSON document in place of its own; an empty document
// has none (A11.1). Its error is ErrFormat or a *mapping.Error.
func Compile(format, members string) (*mapping.Mapping, error) {
	f, ok := mapping.FormatNamed(format)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %.100q", ErrFormat, format)
	case members == "":
		return f.Mapping, nil
	}
	return f.With([]byte(members))
}

// SamplingOf returns the sampling of devices that are registered for a source (A13.1).
func SamplingOf(s *roomsensor.Source) roomsensor.Sampling {
	m, err := Compile(s.Format, s.Mapping)
	if err != nil {
		return roomsensor.SamplingWhole
	}
	return roomsensor.Sampling(m.Sampling)
}
