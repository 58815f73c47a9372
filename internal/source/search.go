package source

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// UnitTables is the database as a Search reads units.
type UnitTables interface {
	// AliasedUnits returns the hardware ids of the units with some distinct aliases. An alias that no unit has is not in
	// the map.
	AliasedUnits(ctx context.Context, aliases []roomsensor.TeamAlias) (map[roomsensor.TeamAlias]string, error)
	// Installations lists all installations of some distinct units (decision 40). A unit that was never installed is not
	// in the map.
	Installations(ctx context.Context, hardwareIDs []string) (map[string][]roomsensor.Installation, error)
}

// Search collects units of uploads and messages, to read what the database knows about all of them at once.
type Search struct {
	hardwareIDs map[string]bool
	aliases     map[roomsensor.TeamAlias]bool
}

// NewSearch returns a search without units.
func NewSearch() *Search {
	return &Search{hardwareIDs: map[string]bool{}, aliases: map[roomsensor.TeamAlias]bool{}}
}

// AddHardwareID adds the unit of an upload.
func (s *Search) AddHardwareID(id string) { s.hardwareIDs[id] = true }

// AddUnits adds units of a message of a team.
func (s *Search) AddUnits(teamID uuid.UUID, units []*Unit) {
	for _, u := range units {
		if alias, ok := u.alias(teamID); ok {
			s.aliases[alias] = true
		} else {
			s.hardwareIDs[u.Name] = true
		}
	}
}

// Read reads what the database knows about the units: with one statement for aliases and one for installations, where
// any are needed.
func (s *Search) Read(ctx context.Context, tables UnitTables) (known *KnownUnits, err error) {
	known = &KnownUnits{}
	if len(s.aliases) > 0 {
		if known.aliases, err = tables.AliasedUnits(ctx, slices.Collect(maps.Keys(s.aliases))); err != nil {
			return nil, fmt.Errorf("reading the aliases of units: %w", err)
		}
		for _, id := range known.aliases {
			s.hardwareIDs[id] = true
		}
	}
	if len(s.hardwareIDs) > 0 {
		known.installations, err = tables.Installations(ctx, slices.Collect(maps.Keys(s.hardwareIDs)))
		if err != nil {
			return nil, fmt.Errorf("reading the installations of units: %w", err)
		}
	}
	return known, nil
}

// KnownUnits is what the database knows about the units of a Search.
type KnownUnits struct {
	aliases       map[roomsensor.TeamAlias]string
	installations map[string][]roomsensor.Installation // by hardware id
}

// HardwareID returns the hardware id of a unit in a message of a team; empty for an unknown alias.
func (k *KnownUnits) HardwareID(teamID uuid.UUID, u *Unit) string {
	if alias, ok := u.alias(teamID); ok {
		return k.aliases[alias]
	}
	return u.Name
}

// Installations returns all installations of a unit.
func (k *KnownUnits) Installations(hardwareID string) []roomsensor.Installation {
	return k.installations[hardwareID]
}
