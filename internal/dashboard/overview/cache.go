package overview

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"roomsensor/internal/panics"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/teamcache"
	"roomsensor/internal/wording"
)

// Backend reads what the tiles of a team show.
type Backend interface {
	Current
	HourlyCO2(
		ctx context.Context, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
	) (map[uuid.UUID][]float32, error)
	OlderValues(
		ctx context.Context, teamID uuid.UUID, missing []roomsensor.MissingValue,
	) ([]roomsensor.OlderValue, error)
	TeamSettings(ctx context.Context, teamID uuid.UUID) (accounts.TeamSettings, error)
	// NightRooms reads a night of the assignments that overlap it. more reports whether there are others than it returns.
	NightRooms(
		ctx context.Context, teamID uuid.UUID, q airquality.NightQuery,
	) (rooms []airquality.NightRoom, more bool, err error)
}

// Current reads the devices of a team with their newest readings. It is called every watchInterval for each team whose
// overview is open.
type Current interface {
	CurrentDevices(
		ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
	) ([]roomsensor.CurrentDevice, error)
}

const (
	// overviewAge is how old the overview of a page may be.
	overviewAge = time.Second
	// overviewTimeout limits one read, which many requests may wait for.
	overviewTimeout = 8 * time.Second
	// overviewKeep is the time after its last read at which an overview is evicted.
	overviewKeep = time.Minute
	// detailsAge is how often sparklines and older values are read of all devices. Those of a device that changed are read
	// at once; other programs may write readings of past hours without changing anything else.
	detailsAge = time.Minute
	// maxLinesAtOnce is how many sparklines a page waits for. Those of 1,000 devices take 0.2 s of CPU time of the
	// database, eight times as much as their newest readings: a page with more of them appears first, and they follow.
	maxLinesAtOnce = 250
	// maxNightRooms is how many bedrooms a team has at most for whose last night the overview waits.
	maxNightRooms = 100
	// linesTimeout limits the reading of the sparklines that follow, with the wait for those of other teams.
	linesTimeout = 30 * time.Second
	// linesKeep is the maximum age of sparklines that are shown because newer ones cannot be read.
	linesKeep = 5 * time.Minute
	// maxLinesReads is how many teams' sparklines are read at the same time.
	maxLinesReads = 2
	// lineBytes is what a sparkline takes in memory.
	lineBytes = 200
	// maxOverviewReads is how many overviews are read at the same time: a quarter of the connections to the database.
	maxOverviewReads = 4
	// maxTiles is how many devices of a team have a tile.
	maxTiles = 5000
	// tileBytes is what a tile takes in memory without its tags.
	tileBytes = 3 << 10
	// maxTileTags is the limit of the memory of the tags of a team.
	maxTileTags = 4 << 20
	// maxOverviewsBytes is the limit of the memory of all overviews: three of the largest teams.
	maxOverviewsBytes = 3 * (maxTiles*tileBytes + maxTileTags)
)

// overviews keeps the overview of each team in memory, so that one read serves all pages and streams of a team.
type overviews struct {
	backend Backend
	now     func() time.Time
	log     zerolog.Logger
	process string // a random name of this process, for versions
	cache   *teamcache.Cache[overview]
	lines   *teamcache.Cache[lines] // of teams with more than maxLinesAtOnce
}

func newOverviews(backend Backend, now func() time.Time, log zerolog.Logger) *overviews {
	o := &overviews{backend: backend, now: now, log: log, process: rand.Text()}
	o.cache = teamcache.New(teamcache.Config[overview]{
		Read: o.read, Timeout: overviewTimeout, MaxReads: maxOverviewReads, MaxBytes: maxOverviewsBytes,
	})
	o.lines = teamcache.New(teamcache.Config[lines]{
		Read: o.readLines, Timeout: linesTimeout, MaxReads: maxLinesReads, MaxBytes: 3 * maxTiles * lineBytes,
	})
	return o
}

// overview has the tiles of a team at one time. It never changes.
type overview struct {
	readAt    time.Time // when the read began: it contains everything committed before
	at        time.Time // the statuses are those of this time
	detailsAt time.Time // when the details of all tiles were read
	linesAt   time.Time // when the sparklines that followed the tiles were read; zero if none did
	awaits    bool      // newer sparklines follow
	process   string
	version   int64   // greater than those of earlier overviews of the team; about microseconds since 1970
	since     int64   // the version from which on the versions of tiles are complete
	tiles     []*tile // by name
	byID      map[uuid.UUID]*tile
	partial   bool   // the team has more devices than tiles
	night     string // what the bedrooms were like last night; empty if no athlete has one, or if there are many
	bytes     int
}

// tile is what the overview shows of a device. It never changes, but for its markup.
type tile struct {
	roomsensor.CurrentDevice

	same    bool // whether the device is as in the overview before, but perhaps not its status and details
	status  roomsensor.Status
	newest  [roomsensor.MetricCount]tileValue // newest value of each metric
	co2     []float32                         // means of the hours of SummaryWindow, NaN without a value
	name    string
	key     []byte // sorts tiles by name
	search  string // what a search looks in, in lower case
	version int64  // of the overview in which it changed last
	markup  atomic.Pointer[markup]
}

// tileValue is a value of a metric. The zero tileValue is none.
type tileValue struct {
	at    time.Time
	value float32
}

// lines are the sparklines of a team, which are read apart from its tiles. They never change.
type lines struct {
	readAt time.Time // when the read began
	hours  roomsensor.Window
	means  map[uuid.UUID][]float32
}

// get returns an overview of a team that contains everything that was committed overviewAge before the call. The
// sparklines of many devices follow in a later overview.
func (o *overviews) get(ctx context.Context, teamID uuid.UUID) (*overview, error) {
	oldest := time.Now().Add(-overviewAge)
	w, err := o.cache.Get(ctx, teamID, func(w *overview) bool { return !w.readAt.Before(oldest) })
	if err == nil && w.awaits {
		// Nobody waits for it: the next read of the overview takes what it has read.
		if l := o.lines.Kept(teamID); l == nil || l.readAt.Before(w.readAt) {
			o.lines.Refresh(ctx, teamID)
		}
	}
	return w, err
}

// readLines reads the sparklines of all tiles of a team, whose overview is in memory.
func (o *overviews) readLines(ctx context.Context, teamID uuid.UUID, _ *lines) (teamcache.Entry[lines], error) {
	l := &lines{readAt: time.Now(), hours: roomsensor.SummaryWindow(o.now())}
	var ids []uuid.UUID
	if w := o.cache.Kept(teamID); w != nil {
		for _, t := range w.tiles {
			ids = append(ids, t.ID)
		}
	}
	var err error
	if l.means, err = o.backend.HourlyCO2(ctx, teamID, ids, l.hours); err != nil {
		o.log.Warn().Err(err).Msg("could not read sparklines")
		return teamcache.Entry[lines]{}, err
	}
	return teamcache.Entry[lines]{
		Value: l, Bytes: lineBytes * len(l.means), Until: l.readAt.Add(detailsAge),
	}, nil
}

// read reads an overview. Tiles that did not change are those of the last one.
func (o *overviews) read(ctx context.Context, teamID uuid.UUID, last *overview) (teamcache.Entry[overview], error) {
	w := &overview{readAt: time.Now(), at: o.now(), process: o.process, byID: map[uuid.UUID]*tile{}}
	w.version, w.detailsAt = w.readAt.UnixMicro(), w.readAt
	w.since = w.version
	if last != nil {
		w.version, w.since = max(w.version, last.version+1), last.since
	}
	devices, err := o.backend.CurrentDevices(ctx, teamID,
		roomsensor.DeviceQuery{Limit: maxTiles + 1, MaxTagBytes: maxTileTags},
		roomsensor.Window{From: w.at, To: w.at})
	if err != nil {
		return teamcache.Entry[overview]{}, err
	}
	w.addTiles(devices)
	if err := o.readDetails(ctx, teamID, w, last); err != nil {
		return teamcache.Entry[overview]{}, err
	}
	w.keepUnchanged(last)
	return teamcache.Entry[overview]{Value: w, Bytes: w.bytes, Until: w.readAt.Add(overviewKeep)}, nil
}

// addTiles adds a tile per device, without details.
func (w *overview) addTiles(devices []roomsensor.CurrentDevice) {
	tags := 0
	for i := range devices {
		tags += devices[i].TagBytes()
		if len(w.tiles) == maxTiles || tags > maxTileTags {
			w.partial = true
			break
		}
		t := newTile(&devices[i], w.at)
		w.tiles = append(w.tiles, t)
		w.byID[t.ID] = t
		w.bytes += tileBytes + devices[i].TagBytes()
	}
}

func newTile(d *roomsensor.CurrentDevice, now time.Time) *tile {
	t := &tile{
		CurrentDevice: *d, status: roomsensor.StatusAt(now, d.LastSeenAt), name: wording.TextOr(d.DisplayName, d.HardwareID),
	}
	searched := []string{t.name, d.HardwareID}
	if a := d.ActiveAssignment; a != nil {
		searched = append(searched, a.Label)
		if a.ExternalRef != nil {
			searched = append(searched, *a.ExternalRef)
		}
	}
	t.search = strings.ToLower(strings.Join(searched, "\n"))
	for _, m := range roomsensor.Metrics {
		if d.Latest == nil {
			break
		}
		if x, ok := d.Latest.Values.Get(m); ok {
			t.newest[m] = tileValue{d.Latest.BucketAt, x}
		}
	}
	return t
}

// readDetails reads the sparklines and older values of the devices that changed, or of all once per detailsAge. It
// leaves out the sparklines of many devices: see addLines.
func (o *overviews) readDetails(ctx context.Context, teamID uuid.UUID, w, last *overview) error {
	hours := roomsensor.SummaryWindow(w.at)
	all := last == nil || w.readAt.Sub(last.detailsAt) >= detailsAge || roomsensor.SummaryWindow(last.at) != hours
	var ids []uuid.UUID
	var missing []roomsensor.MissingValue
	for _, t := range w.tiles {
		before := last.tile(t.ID)
		if before != nil {
			t.same, t.co2 = reflect.DeepEqual(before.CurrentDevice, t.CurrentDevice), before.co2
		}
		if t.same && !all {
			t.newest = before.newest
			continue
		}
		if t.Latest != nil {
			ids = append(ids, t.ID)
			missing = t.appendMissing(missing)
		}
	}
	if last != nil {
		w.linesAt, w.night = last.linesAt, last.night
	}
	if !all {
		w.detailsAt = last.detailsAt
	}
	var means map[uuid.UUID][]float32
	var older []roomsensor.OlderValue
	group, ctx := errgroup.WithContext(ctx)
	read := func(f func() error) { // A panic would end the process.
		group.Go(func() error { return panics.Recover(f) })
	}
	if len(ids) > maxLinesAtOnce {
		w.addLines(o.lines.Kept(teamID), hours)
	} else if len(ids) > 0 {
		read(func() (err error) {
			means, err = o.backend.HourlyCO2(ctx, teamID, ids, hours)
			return err
		})
	}
	if len(missing) > 0 {
		read(func() (err error) {
			older, err = o.backend.OlderValues(ctx, teamID, missing)
			return err
		})
	}
	if all {
		read(func() error { return o.readNight(ctx, teamID, w) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("reading the details of tiles: %w", err)
	}
	if means != nil {
		for _, id := range ids {
			w.byID[id].co2 = means[id]
		}
	}
	for _, v := range older {
		w.byID[v.DeviceID].newest[v.Metric] = tileValue{v.BucketAt, v.Value}
	}
	return nil
}

// readNight reads what the bedrooms were like last night, unless there are many. Their page has the details.
func (o *overviews) readNight(ctx context.Context, teamID uuid.UUID, w *overview) error {
	bedrooms := 0
	for _, t := range w.tiles {
		if t.group() == bedroomGroup {
			bedrooms++
		}
	}
	if w.night = ""; bedrooms == 0 || bedrooms > maxNightRooms {
		return nil
	}
	team, err := o.backend.TeamSettings(ctx, teamID)
	if err != nil {
		return err
	}
	last, _ := team.Night.LastNight(w.at, team.TimeZone)
	rooms, _, err := o.backend.NightRooms(ctx, teamID, airquality.NightQuery{
		Window: last.Window, Athletes: true, Limits: &team.Limits, Now: w.at,
	})
	if err != nil {
		return err
	}
	w.night, _ = wording.NightSummary(rooms, "last night")
	return nil
}

// tile returns the tile of a device, or nil.
func (w *overview) tile(id uuid.UUID) *tile {
	if w == nil {
		return nil
	}
	return w.byID[id]
}

// addLines adds sparklines that were read apart from the tiles. Without newer ones, the tiles keep those of the last
// overview, if these are not too old, and the next read tries again.
func (w *overview) addLines(l *lines, hours roomsensor.Window) {
	isNew := l != nil && l.readAt.After(w.linesAt) && l.hours == hours && w.readAt.Sub(l.readAt) < detailsAge
	if isNew {
		w.linesAt = l.readAt
	} else {
		w.awaits, w.detailsAt = true, time.Time{}
	}
	for _, t := range w.tiles {
		switch {
		case isNew:
			t.co2 = l.means[t.ID]
		case w.readAt.Sub(w.linesAt) >= linesKeep:
			t.co2 = nil // It would look as if it were that of the last 24 hours.
		}
	}
}

// appendMissing appends the metrics that the newest reading lacks.
func (t *tile) appendMissing(missing []roomsensor.MissingValue) []roomsensor.MissingValue {
	for _, m := range roomsensor.Metrics {
		if t.newest[m] == (tileValue{}) {
			missing = append(missing, roomsensor.MissingValue{DeviceID: t.ID, Metric: m, Before: t.Latest.BucketAt})
		}
	}
	return missing
}

// keepUnchanged replaces the tiles that did not change by those of the last overview, and sorts all by name as people
// expect it: "room 9" before "Room 10".
func (w *overview) keepUnchanged(last *overview) {
	collator, buffer := collate.New(language.Und, collate.Numeric, collate.IgnoreCase), &collate.Buffer{}
	for i, t := range w.tiles {
		if t.same && t.looksLike(last.byID[t.ID]) {
			w.tiles[i] = last.byID[t.ID]
			w.byID[t.ID] = w.tiles[i]
			continue
		}
		t.version = w.version
		t.key = slices.Clone(collator.KeyFromString(buffer, t.name))
		buffer.Reset()
	}
	slices.SortFunc(w.tiles, func(a, b *tile) int {
		return cmp.Or(slices.Compare(a.key, b.key), cmp.Compare(a.name, b.name), slices.Compare(a.ID[:], b.ID[:]))
	})
}

// looksLike reports whether two tiles with the same device look the same.
func (t *tile) looksLike(o *tile) bool {
	return t.status == o.status && t.newest == o.newest &&
		slices.EqualFunc(t.co2, o.co2, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}

// token names for browsers the version of an overview and the tileStyle in which they show it.
func (w *overview) token(style string) string {
	return w.process + "-" + strconv.FormatInt(w.version, 10) + "-" + style
}

// clockMargin is more than the clocks of two replicas differ and one read takes.
const clockMargin = 15 * time.Second

// changedSince returns the version after which tiles changed since a token, which may be that of another replica. If it
// is not known what changed since, or the page has another style, that is every tile.
func (w *overview) changedSince(token, style string) int64 {
	process, rest, _ := strings.Cut(token, "-")
	number, shown, _ := strings.Cut(rest, "-")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil || shown != style {
		return 0
	}
	if process != w.process {
		version -= clockMargin.Microseconds()
	}
	if version < w.since {
		return 0
	}
	return version
}
