package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/store/ops"
	"roomsensor/internal/store/pg"
	"roomsensor/schema"
)

const (
	// longTransaction is how old a transaction may be: it holds back the cleanup of dead rows in the whole database.
	longTransaction = time.Hour
	// longBlock is the time after which a blocking session is reported: more than a statement of the service takes, and
	// than it waits for a lock.
	longBlock = 10 * time.Second
	day       = 24 * time.Hour
)

// checkDatabase checks the database server. The other checks of the database need its migrations.
func (d *doctor) checkDatabase(ctx context.Context) {
	database, ok := d.checkMigrations(ctx)
	if !ok {
		return
	}
	d.checkRights(&database)
	d.checkLocks(&database)
	d.checkTrials(ctx)
	d.checkAlerts(ctx)
	server, took, err := d.server(ctx)
	if err != nil {
		fix := "Remove what other findings report, and run the command again."
		if pg.IsDenied(err) {
			fix = needsOwner
		}
		d.find(Unknown, "database settings", fix, "They could not be read: %v.", err)
		return
	}
	d.checkDurability(&server)
	d.checkChecksums(&server)
	d.checkClock("database clock", "the database", server.Clock, took)
	if certificate, err := d.store.Certificate(ctx); err == nil {
		d.checkCertificate("database certificate", "the database", certificate)
	}
	d.checkConnections(&server)
	if chunk, ok := d.checkGrowth(ctx, &server); ok {
		d.checkChunks(ctx, &server, chunk)
	}
	d.checkJobs(ctx, &server)
}

// checkMigrations checks that the database answers and is migrated to this version.
func (d *doctor) checkMigrations(ctx context.Context) (database ops.Database, ok bool) {
	database, err := d.store.Database(ctx)
	if err != nil {
		d.find(Wrong, "database", d.explain(ctx, err).Error(), "The database cannot be used.")
		d.checkBlockers(ctx)
		return database, false
	}
	d.ok("database", "TimescaleDB %s, %s edition, answers.", database.Version, database.Edition)
	d.checkBlockers(ctx) // The other checks may wait for the same locks.
	pending, err := schema.Pending(ctx, d.url)
	switch {
	case err != nil:
		d.find(Unknown, "database migrations", "Check the log of the database.", "They could not be read: %v.", err)
		return database, false
	case pending:
		d.find(Wrong, "database migrations", "Run roomsensor migrate up.",
			"The database is not migrated to this version.")
		return database, false
	}
	d.ok("database migrations", "Every migration of this version is applied.")
	return database, true
}

// mailsLate is the greatest age of a mail that waits.
const mailsLate = 15 * time.Minute

// checkAlerts checks that a process evaluates alerts, and that mails are sent.
func (d *doctor) checkAlerts(ctx context.Context) {
	now := d.now()
	last, failing, err := d.store.NewestAlertRound(ctx)
	if err != nil {
		return // The check of the rights reports it.
	}
	const start = "Start roomsensor notify."
	switch age := now.Sub(last); {
	case last.Unix() == 0:
		d.find(Advice, "alerts", start, "No process has evaluated alerts yet.")
		return
	case age > alerting.Late:
		d.find(Wrong, "alerts", start, "No process has evaluated alerts since %s.", roomsensor.FormatTime(last))
	case failing > 0:
		d.find(Wrong, "alerts", "Read the error in the log of roomsensor notify: could not evaluate the alerts of a team.",
			"The alerts of %d teams could not be evaluated for more than %d minutes.", failing, alerting.Late/time.Minute)
	default:
		d.ok("alerts", "Alerts were evaluated %s ago.", max(0, age).Round(time.Second))
	}
	outbox, err := d.store.Outbox(ctx, now.Add(-day), now.Add(-mailsLate))
	switch {
	case err != nil: // As above.
	case outbox.Failed+outbox.Waiting > 0:
		d.find(Wrong, "mails", "Check SMTP_URL and MAIL_FROM of roomsensor notify by the reason, and the log of the "+
			"SMTP server.",
			"Mails that failed in the last day: %d; that have waited for more than %d minutes: %d. The newest reason: %s.",
			outbox.Failed, mailsLate/time.Minute, outbox.Waiting, cmp.Or(outbox.Error, "none"))
	default:
		d.ok("mails", "No mail failed in the last day, and none has waited for more than %d minutes.", mailsLate/time.Minute)
	}
}

// server returns the state of the server, and how long it took to read it.
func (d *doctor) server(ctx context.Context) (ops.Server, time.Duration, error) {
	began := time.Now()
	server, err := d.store.Server(ctx)
	return server, time.Since(began), err
}

// checkBlockers checks whether sessions make others wait for locks.
func (d *doctor) checkBlockers(ctx context.Context) {
	blockers, err := d.store.Blockers(ctx, longBlock)
	if err != nil {
		return // The check of the database reports the error.
	}
	sees, err := d.store.SeesSessions(ctx)
	d.reportBlockers(blockers, err == nil && sees)
}

// reportBlockers reports sessions. sees says whether the role sees those of other roles.
func (d *doctor) reportBlockers(blockers []ops.Blocker, sees bool) {
	const check = "database sessions"
	switch {
	case len(blockers) > 0:
	case sees:
		d.ok(check, "No session blocks others for longer than %s.", longBlock)
	default:
		d.find(Unknown, check, "Let a superuser run the command, or GRANT pg_read_all_stats to its role.",
			"The role of this command does not see what sessions of other roles do.")
	}
	for i := range blockers {
		b := &blockers[i]
		d.find(Wrong, check,
			fmt.Sprintf("If nobody needs what it does, end it with SQL: SELECT pg_terminate_backend(%d);", b.PID),
			"The session with pid %d (application %q, role %q, state %s) blocks %d others. Its transaction is open for %s.",
			b.PID, b.Application, b.Role, b.State, b.Waiting, b.Open)
	}
}

func (d *doctor) checkRights(database *ops.Database) {
	const check = "database role"
	if database.IsSuperuser {
		d.find(Advice, check,
			"Run roomsensor migrate up with DATABASE_ROLES, and let each process log in as its own role "+
				"(docs/operate/security.md).", "The role of this command is a superuser. No process of the service needs that.")
		return
	}
	d.ok(check, "The role of this command is not a superuser.")
}

func (d *doctor) checkLocks(database *ops.Database) {
	const check = "database locks"
	if needed := database.NeededLocks(); needed > 0 {
		d.find(Wrong, check, "Set it to the needed value, and restart the server.",
			"max_locks_per_transaction is %d; %d chunks need %d. Queries may fail with \"out of shared memory\".",
			database.MaxLocks, database.Chunks, needed)
		return
	}
	d.ok(check, "max_locks_per_transaction is %d, which is enough for %d chunks.", database.MaxLocks, database.Chunks)
}

// checkDurability checks what a commit must survive: the service sets synchronous_commit for its own sessions.
func (d *doctor) checkDurability(server *ops.Server) {
	const check = "database durability"
	switch {
	case server.IsStandby:
		d.find(Wrong, check, "Use the address of the primary, or several with target_session_attrs=read-write.",
			"The server is a standby, which refuses every write.")
	case !server.Syncs:
		d.find(Wrong, check, "Set fsync to on, and restart the server.",
			"fsync is off: a power cut loses acknowledged readings, and may destroy the database.")
	case !server.WritesFullPages:
		d.find(Wrong, check, "Set full_page_writes to on, unless the file system cannot write a part of a page.",
			"full_page_writes is off: a power cut may destroy pages of the database.")
	default:
		d.ok(check, "PostgreSQL %s writes commits to disk (fsync, full_page_writes).", server.Version)
	}
}

// checkChecksums reports damaged pages, and a server that would return them as if they were data.
func (d *doctor) checkChecksums(server *ops.Server) {
	const check, page = "database checksums", "docs/operate/reliability.md#damaged-files"
	switch {
	case server.ChecksumFailures > 0:
		d.find(Wrong, check, "Find the relation in the log of the server, and repair it ("+page+").",
			"PostgreSQL read damaged pages %d times, and did so in the last day. Its disk or memory may be failing.",
			server.ChecksumFailures)
	case !server.HasChecksums:
		d.find(Advice, check, "Stop the server, and run pg_checksums --enable ("+page+").",
			"data_checksums is off: if the disk damages a page, queries may return wrong readings without an error.")
	default:
		d.ok(check, "PostgreSQL verifies a checksum of each page that it reads (data_checksums).")
	}
}

func (d *doctor) checkConnections(server *ops.Server) {
	const check = "database connections"
	if server.Connections*10 > server.MaxConnections*9 {
		d.find(Wrong, check,
			"Run fewer replicas, use PgBouncer (docs/operate/pgbouncer.md), or raise max_connections.",
			"%d of %d connections are in use.", server.Connections, server.MaxConnections)
	} else {
		d.ok(check, "%d of %d connections are in use.", server.Connections, server.MaxConnections)
	}
	if server.OldestTransaction > longTransaction {
		d.find(Wrong, "database transactions", "Find it in pg_stat_activity by its xact_start, and end it.",
			"A transaction is open for %s. Until it ends, no dead row of the database can be cleaned up.",
			server.OldestTransaction.Round(time.Minute))
	}
}

// checkGrowth reports what the readings take. It returns the newest full chunk, which is zero if there is none, and
// false if it could not be read.
func (d *doctor) checkGrowth(ctx context.Context, server *ops.Server) (chunk ops.FullChunk, ok bool) {
	const check = "database size"
	chunk, err := d.store.FullChunk(ctx)
	switch {
	case err != nil:
		d.find(Unknown, check, "Check the log of the database.", "It could not be read: %v.", err)
		return chunk, false
	case chunk.Bytes == 0:
		d.ok(check, "The database has %s, and no full chunk of readings yet.", size(server.Bytes))
		return chunk, true
	}
	daily := int64(float64(chunk.Bytes) * day.Hours() / chunk.Length.Hours())
	d.ok(check,
		"The database has %s. The newest full chunk grew by %s per day; compare that with the free space of its disk, "+
			"which SQL does not show.", size(server.Bytes), size(daily))
	return chunk, true
}

// checkChunks checks the length of the chunks of new readings: the index of one should take at most a quarter of the
// memory of the server (docs/operate/timescaledb.md), which shared_buffers usually is.
func (d *doctor) checkChunks(ctx context.Context, server *ops.Server, full ops.FullChunk) {
	const check = "database chunks"
	chunks, err := d.store.Chunks(ctx)
	if err != nil {
		d.find(Unknown, check, "Check the log of the database.", "They could not be read: %v.", err)
		return
	}
	daily := server.DailyIndexBytes(full)
	days := int64(chunks.Interval / day)
	fitting := roomsensor.FittingChunkInterval(daily, server.SharedBuffers)
	described := fmt.Sprintf("New chunks have %d days. With %d devices, the indexes of one grow to %s, and "+
		"shared_buffers has %s.", days, server.Devices, size(daily*days), size(server.SharedBuffers))
	switch {
	case daily*days <= server.SharedBuffers:
		d.ok(check, "%s", described)
	case chunks.Interval > fitting:
		d.find(Advice, check, fmt.Sprintf("Run roomsensor migrate up --chunk-interval %dd. "+
			"The service continues meanwhile (docs/operate/timescaledb.md).", fitting/day),
			"%s Uploads become slower when they do not stay in memory.", described)
	default:
		d.find(Advice, check, "Give the server more memory, and a quarter of it to shared_buffers "+
			"(docs/operate/sizing.md).", "%s Uploads become slower when they do not stay in memory.", described)
	}
}

// checkJobs checks the background jobs of TimescaleDB and of the workers.
func (d *doctor) checkJobs(ctx context.Context, server *ops.Server) {
	const check = "database jobs"
	jobs, err := d.store.FailedJobs(ctx)
	switch {
	case err != nil:
		d.find(Unknown, check, "Check the log of the database.", "They could not be read: %v.", err)
	case len(jobs) == 0:
		d.ok(check, "No job of TimescaleDB failed or is late.")
	}
	for i := range jobs {
		d.find(Wrong, check,
			"Read its error in timescaledb_information.job_errors and in the log of the server, and check "+
				"that timescaledb.max_background_workers is not 0.",
			"The job %s (%d) is late or failed; its last run: %s.", jobs[i].Name, jobs[i].ID, jobs[i].LastRun)
	}
	if server.PostponedChunks > 0 {
		d.find(Advice, "database layout", "Run roomsensor maintain with a longer --timeout when few people read.",
			"%d chunks were not rewritten in primary-key order, because it would have taken too long. Reads of them are slower.",
			server.PostponedChunks)
	}
	parked, err := d.store.RejectCount(ctx, roomsensor.ReasonNotStorable)
	if err == nil && parked > 0 {
		d.find(Wrong, "rejects",
			"Read the cause with roomsensor rejects list --reason not_storable, remove it, and run "+
				"roomsensor rejects replay --reason not_storable.",
			"%d uploads are set aside, because the database refused them.", parked)
	}
}
