package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// AliasedUnits returns the hardware ids of the units with some distinct aliases. An alias that no unit has is not in
// the map.
func (s *Store) AliasedUnits(
	ctx context.Context, aliases []roomsensor.TeamAlias,
) (map[roomsensor.TeamAlias]string, error) {
	return s.aliasedUnits(ctx, s.Pool, aliases)
}

func (s *Store) aliasedUnits(
	ctx context.Context, conn db.DBTX, aliases []roomsensor.TeamAlias,
) (map[roomsensor.TeamAlias]string, error) {
	var p db.AliasUnitListParams
	for _, a := range aliases {
		p.TeamIds, p.AliasKeys = append(p.TeamIds, a.TeamID), append(p.AliasKeys, a.Key)
	}
	rows, err := s.Queries.AliasUnitList(ctx, conn, p)
	if err != nil {
		return nil, fmt.Errorf("reading aliases: %w", pg.Translate(err))
	}
	units := make(map[roomsensor.TeamAlias]string, len(rows))
	for i := range rows {
		units[roomsensor.TeamAlias{TeamID: rows[i].TeamID, Key: rows[i].AliasKey}] = rows[i].HardwareID
	}
	return units, nil
}

// Aliases returns the aliases of some units of a team, by hardware id. A unit without an alias is not in the map.
func (s *Store) Aliases(ctx context.Context, teamID uuid.UUID, hardwareIDs []string) (map[string]string, error) {
	rows, err := s.Queries.AliasList(ctx, s.Pool, db.AliasListParams{TeamID: teamID, HardwareIds: hardwareIDs})
	if err != nil {
		return nil, fmt.Errorf("listing aliases: %w", pg.Translate(err))
	}
	aliases := make(map[string]string, len(rows))
	for i := range rows {
		aliases[rows[i].HardwareID] = rows[i].Alias
	}
	return aliases, nil
}

// knownUnit returns the hardware id of a unit of a team by a name: the name itself if it is a hardware id, otherwise
// that of the unit with the alias; empty if no unit has it.
func (s *Store) knownUnit(ctx context.Context, conn db.DBTX, teamID uuid.UUID, name string) (string, error) {
	if roomsensor.IsHardwareID(name) {
		return name, nil
	}
	alias := roomsensor.TeamAlias{TeamID: teamID, Key: roomsensor.NormalizeAlias(name)}
	known, err := s.aliasedUnits(ctx, conn, []roomsensor.TeamAlias{alias})
	return known[alias], err
}

// unitNamed is knownUnit, and gives a unit with a new alias a hardware id (A12.2): that of its hexadecimal digits, or a
// random one if the alias has another form or somebody uses that hardware id.
func (s *Store) unitNamed(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, name string,
) (hardwareID string, err error) {
	if hardwareID, err = s.knownUnit(ctx, tx, teamID, name); err != nil || hardwareID != "" {
		return hardwareID, err
	}
	hardwareID, ok := roomsensor.AliasHardwareID(name)
	if !ok {
		hardwareID = randomHardwareID()
	}
	for {
		used, err := s.Queries.HardwareExists(ctx, tx, hardwareID)
		if err != nil {
			return "", err
		}
		if !used {
			break
		}
		hardwareID = randomHardwareID()
	}
	err = s.Queries.AliasInsert(ctx, tx, db.AliasInsertParams{
		TeamID: teamID, AliasKey: roomsensor.NormalizeAlias(name), Alias: name, HardwareID: hardwareID,
	})
	if pg.Violates(err, pg.StateUnique, "") {
		err = pg.Overloaded(errors.New("another request registers the same alias"))
	}
	return hardwareID, err
}

// randomHardwareID returns a hardware id with 18 digits: more than those of an IMEI, so that it is not that of a unit.
func randomHardwareID() string {
	const least = 100_000_000_000_000_000
	return "dev:" + strconv.FormatInt(least+rand.Int64N(9*least), 10) //nolint:gosec // It is not a secret.
}
