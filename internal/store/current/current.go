// Package current reads the live snapshot of /devices/current: the devices of a team with their newest readings, which
// workers copy into device_state, and the statistics of the last 24 hours, of which it reads only those that changed.
package current

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
	"roomsensor/internal/store/readings"
	"roomsensor/internal/teamcache"
)

// Store reads live snapshots. It is safe for concurrent use.
type Store struct {
	*pg.DB
	readings *readings.Store
	stats    *teamcache.Values[teamStats]

	// StatsDevices is how many devices have their statistics read in one transaction. Tests set another number.
	StatsDevices int
}

// New returns a store with the pools of a role.
func New(d *pg.DB, r *readings.Store) *Store {
	return &Store{d, r, teamcache.NewValues[teamStats](maxStatsBytes), statsDevices}
}

// CurrentDevices reads a page of the live snapshot: devices with their newest reading and the statistics of some whole
// hours (decision 17), the last of which is the current one. An empty window reads no statistics. The newest readings
// are those of the beginning of the call; the statistics may have later ones too.
func (s *Store) CurrentDevices(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) ([]roomsensor.CurrentDevice, error) {
	list, err := s.listCurrent(ctx, teamID, q)
	if err != nil {
		return nil, fmt.Errorf("listing current devices: %w", pg.Translate(err))
	}
	read := &teamStats{hours: hours, devices: map[uuid.UUID]deviceStats{}}
	if err := s.addStats(ctx, teamID, list, &teamStats{}, read); err != nil {
		return nil, fmt.Errorf("reading statistics of current devices: %w", pg.Translate(err))
	}
	return list.devices, nil
}

// CurrentTeam is CurrentDevices for all devices of a team and the hours of last_24h at now, or nil if there are more
// devices or tags than q allows. It reads only the statistics that changed since an earlier call (see teamStats). What
// it read before an error counts too, so that the next call continues: the statistics of a large team may take longer
// than a request.
func (s *Store) CurrentTeam(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, now time.Time,
) ([]roomsensor.CurrentDevice, error) {
	list, err := s.listCurrent(ctx, teamID, roomsensor.DeviceQuery{Limit: q.Limit + 1, MaxTagBytes: q.MaxTagBytes})
	if err != nil {
		return nil, fmt.Errorf("listing current devices: %w", pg.Translate(err))
	}
	if list.isCut || len(list.devices) > q.Limit {
		return nil, nil
	}
	read := &teamStats{
		source: list.source, hours: roomsensor.SummaryWindow(now),
		devices: make(map[uuid.UUID]deviceStats, len(list.devices)),
	}
	err = s.addStats(ctx, teamID, list, s.stats.Kept(teamID).of(list.source, read.hours), read)
	if err == nil && !now.Before(nextAt(teamID, read.hours)) {
		_ = s.readNext(ctx, teamID, read) // This request does not need it, and the next one tries it again.
	}
	s.stats.Keep(teamID, teamcache.Entry[teamStats]{Value: read, Bytes: read.bytes(), Until: read.hours.To.Add(time.Hour)})
	if err != nil {
		return nil, fmt.Errorf("reading statistics of current devices: %w", pg.Translate(err))
	}
	return list.devices, nil
}

// currentList is a page of devices without statistics.
type currentList struct {
	devices  []roomsensor.CurrentDevice
	versions []readingVersions // of the readings of each device
	source   readingsSource    // read after the devices
	isCut    bool              // whether it ends early because of the tags
}

// readingVersions change with the readings of a device. They are compared for equality only.
type readingVersions struct {
	all  int64 // of all readings
	late int64 // of the readings before the hour of the newest one
}

// readingsSource is the state of the readings of all devices, as CurrentSourceGet returns it.
type readingsSource struct {
	version int64
	chunks  []int64 // in ascending order
}

// lacks reports whether a chunk of readings does not exist any more.
func (s *readingsSource) lacks(chunk int64) bool {
	_, exists := slices.BinarySearch(s.chunks, chunk)
	return !exists
}

// listCurrent reads a page of devices. Like fleet.EachDevice, it reads it in portions: the tags in the first one show
// how many devices q.MaxTagBytes has room for.
func (s *Store) listCurrent(ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery) (*currentList, error) {
	list := &currentList{devices: []roomsensor.CurrentDevice{}}
	filter, ok := fleet.MetadataFilter(q.Metadata)
	if !ok {
		return list, nil
	}
	maxTagBytes, tagBytes := cmp.Or(q.MaxTagBytes, math.MaxInt32), 0
	for mean := fleet.FirstTagBytes; ; mean = tagBytes/len(list.devices) + 1 {
		portion := min(max(0, maxTagBytes-tagBytes)/mean+1, q.Limit-len(list.devices))
		rows, err := s.listCurrentPortion(ctx, list, db.CurrentDeviceListParams{
			TeamID: teamID, Metadata: filter, After: q.After, Most: int64(portion),
		})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if err := list.add(row); err != nil {
				return nil, err
			}
			d := &list.devices[len(list.devices)-1]
			q.After = &d.ID
			if tagBytes += d.TagBytes(); tagBytes > maxTagBytes && len(list.devices) > 1 {
				list.isCut = true
				return list, nil
			}
		}
		if len(rows) < portion || len(list.devices) == q.Limit {
			return list, nil
		}
	}
}

// listCurrentPortion reads rows of a list, and then the source of the readings, in one round trip.
func (s *Store) listCurrentPortion(
	ctx context.Context, list *currentList, p db.CurrentDeviceListParams,
) (rows []*db.CurrentDeviceListRow, err error) {
	var batch pgx.Batch
	batch.Queue(db.CurrentDeviceList, pg.Positional(p)...).Query(func(r pgx.Rows) error {
		rows, err = pgx.CollectRows(r, pgx.RowToAddrOfStructByPos[db.CurrentDeviceListRow])
		return err //nolint:wrapcheck // The caller of the batch wraps it.
	})
	batch.Queue(db.CurrentSourceGet).QueryRow(func(r pgx.Row) error {
		return r.Scan(&list.source.version, &list.source.chunks)
	})
	return rows, s.Pool.SendBatch(ctx, &batch).Close() //nolint:wrapcheck // The callers of listCurrent wrap it.
}

func (l *currentList) add(row *db.CurrentDeviceListRow) error {
	d, err := fleet.Device(&db.DeviceDetail{
		ID: row.ID, TeamID: row.TeamID, HardwareID: row.HardwareID, DisplayName: row.DisplayName,
		FirmwareVersion: row.FirmwareVersion, Metadata: row.Metadata, LastSeenAt: row.LastSeenAt,
		RssiDbm: row.RssiDbm, SignalBars: row.SignalBars, AssignmentID: row.AssignmentID,
		AssignmentType: row.AssignmentType, Label: row.Label,
		StartedAt: row.StartedAt, ExternalRef: row.ExternalRef,
	})
	if err != nil {
		return err
	}
	current := roomsensor.CurrentDevice{Device: d}
	if row.BucketAt != nil && !l.source.lacks(row.Chunk) {
		current.Latest = &roomsensor.Reading{
			BucketAt: row.BucketAt.UTC(), IngestedAt: row.IngestedAt.UTC(),
			Values: roomsensor.ValuesOf([...]*float32{row.Co2Ppm, row.TempC, row.HumidityPct, row.Lux, row.SplDb}),
		}
	}
	l.devices = append(l.devices, current)
	l.versions = append(l.versions, readingVersions{row.ReadingsVersion, row.LateVersion})
	return nil
}
