package damage

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/postgres"
	"roomsensor/test/harness"
	"roomsensor/test/ledger"
	"roomsensor/test/proctest"
)

// pageBytes is the size of a page of PostgreSQL.
const pageBytes = 8192

// databaseCase is damage to the files of PostgreSQL, and what it does.
type databaseCase struct {
	name      string
	killed    bool // the server was killed before, so that it recovers from its log
	unchecked bool // without data checksums
	damage    func(d *database, f *files)
	// start is what the server logs when it refuses to start; empty if it starts.
	start string
	// read is the error of a scan of the readings; empty if it reads.
	read string
	// loses is whether readings of confirmed uploads are absent; wrong is whether one has another value, which the replay
	// does not correct, because it is the greater one (decision 37 e).
	loses, wrong bool
	doctor       string          // finding of doctor
	repair       func(*database) // before the replay of the stream; nil without
	fast         bool            // is in the short form
}

func databaseCases() []databaseCase {
	const damaged = "invalid page in block"
	return []databaseCase{
		{name: "nothing"},
		{name: "nothing, killed", killed: true},
		{
			name: "a bit of the readings", damage: flipReading, read: damaged, doctor: "read damaged pages",
			repair: (*database).zeroDamaged, fast: true,
		},
		{
			name: "a bit of the readings, without checksums", unchecked: true, damage: flipReading, wrong: true,
			doctor: "data_checksums is off",
		},
		{name: "a page of the readings is zero", damage: zeroReadings, loses: true, repair: (*database).reindex},
		{name: "the tail of the readings", damage: cutReadings(3 * pageBytes), loses: true, repair: (*database).reindex},
		{name: "a part of the last page", damage: cutReadings(100), loses: true, repair: (*database).reindex},
		{name: "a bit of the index", damage: flipIndex, repair: (*database).reindex},
		{name: "bits of the log, killed", killed: true, damage: flipLog, loses: true},
		{name: "bits of the log", damage: flipLog},
		{
			name: "the log is gone", damage: func(_ *database, f *files) { remove("pg_wal/0*")(f) },
			start: "could not locate a valid checkpoint record", repair: (*database).resetLog,
		},
		{
			name: "a bit of pg_control", damage: func(_ *database, f *files) { flip("global/pg_control", 0, 0.03)(f) },
			start: "FATAL", repair: (*database).resetLog,
		},
	}
}

// TestDatabase takes 15 seconds in its short form, and two minutes with all kinds of damage.
func TestDatabase(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := newDatabase(t, seed)
	for i, c := range databaseCases() {
		if all || c.fast {
			t.Run(c.name, func(t *testing.T) { d.try(t, c, rand.New(rand.NewPCG(seed, uint64(i)))) })
		}
	}
}

// database is a stopped server with the readings of a ledger, whose files are copied for each kind of damage.
type database struct {
	*harness.Service

	t       *testing.T // of the present case
	options postgres.Options
	server  *postgres.Server
	fleet   *harness.Fleet
	ledger  *ledger.Ledger
	ingest  *harness.Process
	bin     string // directory of PostgreSQL's programs

	chunk, index    string // files of the largest chunk of readings
	relation        string // its name
	page            int    // of a reading
	value           float32
	logFrom, logTo  int64 // what the server recovers after a crash, in the last segment of the log
	logFile         string
	stopped, killed string // the files after each way to end
}

func newDatabase(t *testing.T, seed uint64) *database {
	t.Helper()
	e, err := harness.NewEnv(t.TempDir(), t.Output())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background(), false)) })
	require.NoError(t, e.Build(t.Context()))
	d := &database{t: t, options: postgres.Options{Settings: map[string]string{
		"checkpoint_timeout": "1h", "autovacuum": "off", "timescaledb.max_background_workers": "0", "fsync": "off",
	}}}
	var info postgres.Info
	d.server, info, err = e.StartDatabase(t.Context(), d.options)
	require.NoError(t, err)
	t.Log(info.String())
	d.options.DataDir = d.server.DataDir
	nats, js, err := e.StartNATS(t.Context())
	require.NoError(t, err)
	d.Service = &harness.Service{
		Env: e, Program: e.Programs.Roomsensor, DatabaseURL: func() string { return d.server.URL }, QueueURL: nats.URL, JS: js,
		AckWait: 3 * time.Second,
	}
	d.send(seed)
	d.describe()
	d.keep()
	return d
}

// send stores the readings of a ledger, all of them after a checkpoint.
func (d *database) send(seed uint64) {
	ctx := d.t.Context()
	o := &harness.Options{Seed: seed, Units: 6, Teams: 2}
	var err error
	d.fleet, err = d.CreateFleet(ctx, o)
	require.NoError(d.t, err)
	d.execute("CHECKPOINT")
	requests, err := ledger.Make(ledger.Options{
		Seed: seed, Readings: 20_000, Span: 2 * time.Second, Now: d.fleet.Now, Teams: o.Teams, Units: d.fleet.Units,
	})
	require.NoError(d.t, err)
	d.ingest, err = d.NewProcess("ingest", d.Program, []string{
		harness.UnlimitedRequests, harness.UnlimitedBytes, "DATABASE_URL=" + d.server.URL, "NATS_URL=" + d.QueueURL,
	}, "ingest")
	require.NoError(d.t, err)
	require.NoError(d.t, d.ingest.Start(ctx))
	d.Receiver = d.ingest.Address
	trial := harness.NewTrial(d.Service, d.fleet, requests)
	d.ledger = trial.Ledger
	trial.Send(ctx, requests)
	require.NoError(d.t, trial.Settle(ctx))
	require.NoError(d.t, d.ingest.End())
}

// describe finds the files to damage.
func (d *database) describe() {
	require.NoError(d.t, d.Query(d.t.Context(), func(ctx context.Context, conn *pgx.Conn) error {
		var redo string
		return conn.QueryRow(ctx, `
			SELECT c.oid::regclass::text, pg_relation_filepath(c.oid), pg_relation_filepath(i.indexrelid),
			    redo_wal_file, redo_lsn::text, pg_walfile_name(pg_current_wal_lsn()),
			    CASE redo_wal_file WHEN pg_walfile_name(pg_current_wal_lsn())
			        THEN (redo_lsn - '0/0'::pg_lsn)::bigint % 16777216 ELSE 0 END,
			    (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint % 16777216
			FROM pg_control_checkpoint(), timescaledb_information.chunks
			JOIN pg_class c ON c.oid = format('%I.%I', chunk_schema, chunk_name)::regclass
			JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
			WHERE hypertable_name = 'readings' ORDER BY pg_relation_size(c.oid) DESC LIMIT 1`,
		).Scan(&d.relation, &d.chunk, &d.index, new(string), &redo, &d.logFile, &d.logFrom, &d.logTo)
	}))
	require.NoError(d.t, d.Query(d.t.Context(), func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT (ctid::text::point)[0]::int, co2_ppm FROM "+d.relation+
			" WHERE co2_ppm > 400 AND co2_ppm <> trunc(co2_ppm) ORDER BY bucket_at, device_id LIMIT 1").Scan(&d.page, &d.value)
	}))
	out, err := os.ReadFile(filepath.Join(d.options.DataDir, "server.json"))
	require.NoError(d.t, err)
	var state struct {
		Bin string `json:"bin"`
	}
	require.NoError(d.t, json.Unmarshal(out, &state))
	if state.Bin == "" {
		d.t.Skip("the server runs in a container, whose files the trial cannot change")
	}
	d.bin = state.Bin
}

// keep copies the files after a crash and after a stop.
func (d *database) keep() {
	d.killed, d.stopped = filepath.Join(d.options.DataDir, "killed"), filepath.Join(d.options.DataDir, "stopped")
	first, _, err := postgres.Processes(d.options.DataDir)
	require.NoError(d.t, err)
	require.NoError(d.t, syscall.Kill(first, syscall.SIGSTOP)) // It starts no process that the list would lack.
	for _, pid := range append([]int{first}, proctest.Children(first)...) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // It may have ended.
	}
	d.run("cp", "-a", d.data(), d.killed)
	d.start("")
	d.stop()
	d.run("cp", "-a", d.data(), d.stopped)
}

func (d *database) data() string { return filepath.Join(d.options.DataDir, "pgdata") }

func (d *database) try(t *testing.T, c databaseCase, rng *rand.Rand) {
	t.Helper()
	d.t = t
	from := d.stopped
	if c.killed {
		from = d.killed
	}
	require.NoError(t, os.RemoveAll(d.data()))
	d.run("cp", "-a", from, d.data())
	if c.unchecked {
		d.tool("pg_checksums", "--disable", d.data())
	}
	if c.damage != nil {
		c.damage(d, &files{t, rng, d.data()})
	}
	d.start(c.start)
	defer d.stop()
	if c.start == "" {
		d.checkDamage(c)
	}
	if c.repair != nil {
		c.repair(d)
	}
	d.replay()
	_, verdict := d.compare()
	t.Logf("after the replay: %s", verdict.String())
	require.Equal(t, c.wrong, verdict.Wrong == 1)
	require.True(t, c.wrong || verdict.Clean())
}

// checkDamage compares what is left, and what is noticed, with the table.
func (d *database) checkDamage(c databaseCase) {
	d.t.Helper()
	err, verdict := d.compare()
	d.t.Logf("%v; %s", err, verdict.String())
	if c.read == "" {
		require.NoError(d.t, err)
		require.Equal(d.t, c.loses, verdict.Lost > 0)
		require.True(d.t, c.loses || c.wrong == (verdict.Wrong == 1), "%s", verdict.String())
	} else {
		require.ErrorContains(d.t, err, c.read)
	}
	doctor := exec.CommandContext(d.t.Context(), d.Program, "doctor")
	doctor.Env = []string{"DATABASE_URL=" + d.server.URL, "NATS_URL=" + d.QueueURL}
	out, _ := doctor.Output() // It fails because fsync is off.
	if c.doctor == "" {
		require.Contains(d.t, string(out), "verifies a checksum of each page")
	}
	require.Contains(d.t, string(out), c.doctor)
}

// compare reads the readings and compares them with the ledger.
func (d *database) compare() (error, ledger.Verdict) { //nolint:revive,staticcheck // The error is a result.
	tables, err := d.ReadTables(d.t.Context(), d.fleet.Excluded)
	if err != nil {
		return err, ledger.Verdict{}
	}
	_, verdict := d.ledger.Compare(tables.Readings)
	return nil, verdict
}

// replay lets a worker store the whole stream again.
func (d *database) replay() {
	d.t.Helper()
	require.NoError(d.t, d.ingest.Start(d.t.Context()))
	require.NoError(d.t, d.Command(d.t.Context(), nil, "stream", "replay"))
	require.NoError(d.t, d.ShortenAckWait(d.t.Context()))
	_, err := d.AwaitSettled(d.t.Context())
	require.NoError(d.t, err)
	require.NoError(d.t, d.ingest.End())
}

// start starts the server, or checks that it refuses with a message.
func (d *database) start(refusal string) {
	d.t.Helper()
	server, err := postgres.Start(d.t.Context(), d.options)
	if refusal != "" {
		require.ErrorContains(d.t, err, refusal)
		return
	}
	require.NoError(d.t, err)
	d.server = server
}

func (d *database) stop() { require.NoError(d.t, postgres.Stop(d.t.Context(), d.options.DataDir)) }

func (d *database) execute(statements ...string) {
	d.t.Helper()
	require.NoError(d.t, d.Query(d.t.Context(), func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}))
}

// zeroDamaged empties the damaged pages, which a replay fills again.
func (d *database) zeroDamaged() {
	d.execute("SET zero_damaged_pages = on", "VACUUM (FULL) "+d.relation)
}

func (d *database) reindex() { d.execute("REINDEX TABLE " + d.relation) }

func (d *database) resetLog() {
	d.tool("pg_resetwal", "--force", d.data())
	d.start("")
}

// tool runs a program of PostgreSQL as the user of the server.
func (d *database) tool(name string, args ...string) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), filepath.Join(d.bin, name), args...)
	cmd.Dir = "/"
	info, err := os.Stat(d.data())
	require.NoError(d.t, err)
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(d.t, err, "%s", out)
}

func (d *database) run(argv ...string) {
	d.t.Helper()
	out, err := exec.CommandContext(d.t.Context(), argv[0], argv[1:]...).CombinedOutput()
	require.NoError(d.t, err, "%s", out)
}

// flipReading sets a bit of the CO2 of a reading, so that it is greater.
func flipReading(d *database, f *files) {
	f.change(d.chunk, func(data []byte) []byte {
		var stored, damaged [4]byte
		bits := math.Float32bits(d.value)
		binary.LittleEndian.PutUint32(stored[:], bits)
		bit := 12 // of the mantissa, which has 23 of them
		for bits>>bit&1 == 1 {
			bit++
		}
		require.Less(f.t, bit, 23)
		binary.LittleEndian.PutUint32(damaged[:], bits|1<<bit)
		page := data[d.page*pageBytes : (d.page+1)*pageBytes]
		at := bytes.LastIndex(page, stored[:])
		require.Positive(f.t, at)
		f.t.Logf("%s: byte %d of page %d: %v becomes %v", d.chunk, at, d.page, stored, damaged)
		copy(page[at:], damaged[:])
		return data
	})
}

// flipIndex inverts a bit in the second half of a page, which has entries.
func flipIndex(d *database, f *files) {
	f.change(d.index, func(data []byte) []byte {
		page := f.rng.IntN(len(data)/pageBytes - 1)
		at := page*pageBytes + pageBytes/2 + f.rng.IntN(pageBytes/2-16)
		f.t.Logf("%s: a bit of byte %d of page %d", d.index, at%pageBytes, page)
		data[at] ^= 1 << f.rng.IntN(8)
		return data
	})
}

func zeroReadings(d *database, f *files) {
	f.change(d.chunk, func(data []byte) []byte {
		clear(data[pageBytes : 2*pageBytes])
		return data
	})
}

func cutReadings(bytes int) func(*database, *files) {
	return func(d *database, f *files) { cut(d.chunk, bytes)(f) }
}

// flipLog inverts bits in the middle half of what the server recovers, in more bytes than the padding between records
// has, which no checksum covers.
func flipLog(d *database, f *files) {
	f.change("pg_wal/"+d.logFile, func(data []byte) []byte {
		quarter := (d.logTo - d.logFrom) / 4
		at := d.logFrom + quarter + f.rng.Int64N(2*quarter)
		f.t.Logf("%s: bits of byte %d and 7 more of %d", d.logFile, at, len(data))
		for i := range 8 {
			data[at+int64(i)] ^= 1
		}
		return data
	})
}
