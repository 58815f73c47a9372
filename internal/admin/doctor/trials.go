package doctor

import (
	"context"
	"fmt"
	"strings"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
	"roomsensor/schema"
)

const (
	needsOwner = "Run the command as the owner of the tables (docs/operate/security.md)."
	// maxListed bounds the rights that a finding lists.
	maxListed = 5
)

// checkTrials tries in the database what processes and the next migration must be able to do. It changes nothing.
func (d *doctor) checkTrials(ctx context.Context) {
	for _, c := range []struct {
		name string
		try  func(ctx context.Context, check string) error
	}{
		{"database writes", d.tryWrite},
		{"database owner", d.checkOwner},
		{"database roles", d.checkRoles},
		{"database archive", d.checkArchive},
	} {
		if err := c.try(ctx, c.name); pg.IsDenied(err) {
			d.find(Unknown, c.name, needsOwner, "The role of this command may not try it: %v.", err)
		} else if err != nil {
			d.find(Unknown, c.name, "Remove what other findings report, check the log of the database, and repeat it.",
				"It could not be checked: %v.", err)
		}
	}
}

// tryWrite finds a server that is read-only or has no room, and locks that stop the processes.
func (d *doctor) tryWrite(ctx context.Context, check string) error {
	err := d.store.TryWrite(ctx)
	switch {
	case err == nil:
		d.ok(check, "The database accepts writes to all tables.")
		return nil
	case pg.IsDenied(err):
		return err
	}
	fix := "Read the error, and check the settings and the disk of the server: default_transaction_read_only of the " +
		"database and its roles, and the free space."
	holders, failed := d.store.LockHolders(ctx)
	if failed == nil && len(holders) > 0 {
		texts := make([]string, len(holders))
		for i, h := range holders {
			texts[i] = fmt.Sprintf("pid %d locks %s", h.PID, h.Table)
		}
		fix = fmt.Sprintf("If nobody needs what it does, end the session with SQL: SELECT pg_terminate_backend(%d); %s.",
			holders[0].PID, strings.Join(texts, ", "))
	}
	d.find(Wrong, check, fix, "The database refuses writes, so that nothing is stored: %v.", err)
	return nil
}

func (d *doctor) checkOwner(ctx context.Context, check string) error {
	owner, err := d.store.Owner(ctx)
	switch {
	case err != nil:
		return err
	case owner.MayCreate:
		d.ok(check, "The role %s owns the tables, and may create more of them.", owner.Tables)
	default:
		d.find(Wrong, check, "Let an administrator run: "+owner.Repair+";",
			"The role %s owns the tables, and may not create more of them in the schema public: the database belongs to %s. "+
				"The next migrate up can fail.", owner.Tables, owner.Database)
	}
	return nil
}

// checkRoles compares the rights of the roles of the processes with those that migrate up gives them.
func (d *doctor) checkRoles(ctx context.Context, check string) error {
	rights, err := schema.CompareRights(ctx, d.url)
	fix := fmt.Sprintf("Run roomsensor migrate up with DATABASE_ROLES=%s.", rights.Prefix)
	switch {
	case err != nil:
		return err
	case rights.Prefix == "":
		d.ok(check, "The processes have no roles of their own (docs/operate/security.md).")
	case len(rights.Missing) > 0:
		d.find(Wrong, check, fix, "%d rights are missing: %s.", len(rights.Missing), listed(rights.Missing))
	case len(rights.Added) > 0:
		d.find(Advice, check, fix, "%d rights are not needed: %s.", len(rights.Added), listed(rights.Added))
	default:
		d.ok(check, "The roles %s_* have the rights that this version needs, and no others.", rights.Prefix)
	}
	return nil
}

// listed returns the first items of a list.
func listed(items []string) string {
	if len(items) > maxListed {
		return strings.Join(items[:maxListed], ", ") + ", ..."
	}
	return strings.Join(items, ", ")
}

func (d *doctor) checkArchive(ctx context.Context, check string) error {
	archive, err := d.store.Archive(ctx)
	switch {
	case err != nil:
		return err
	case archive.Fails:
		d.find(Wrong, check, "Read the cause in the log of the server, and repair archive_command or its target.",
			"The write-ahead log is not archived: %s failed (%d failures in all). The disk fills up, and the last backup "+
				"becomes older.", archive.Segment, archive.Failures)
	case archive.On:
		d.ok(check, "The last segment of the write-ahead log was archived (%s).", roomsensor.FormatTime(archive.At))
	default:
		d.ok(check, "archive_mode is off: dumps are the only backups that this server makes.")
	}
	return nil
}
