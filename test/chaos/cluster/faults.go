package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/retry"
)

// Event is a fault that happened.
type Event struct {
	Fault  string `json:"fault"`
	Member string `json:"member"`
	// Began is the time of the fault. At Recovered all members were ready again.
	Began     time.Time `json:"began"`
	Recovered time.Time `json:"recovered"`
	// Promoted is the time at which the standby was promoted, if it was.
	Promoted time.Time `json:"promoted,omitzero"`
	Notes    []string  `json:"notes,omitempty"`
}

// faults carries out all faults one after the other. It waits for the cluster to recover after each.
type faults struct {
	*env
	events []*Event
}

// kind is a kind of fault.
type kind struct {
	name string
	do   func(*faults, context.Context) error
}

// kinds are the faults of one round. The last two replace the primary.
var kinds = []kind{
	{"kill the leader of the stream", (*faults).killLeader},
	{"disconnect the leader of the stream", (*faults).disconnectLeader},
	{"disconnect a worker", (*faults).disconnectWorker},
	{"kill an API during an export", (*faults).killDuringExport},
	{"kill the primary, promote the standby", (*faults).killPrimary},
	{"disconnect the primary, promote the standby", (*faults).disconnectPrimary},
}

// kinds returns the selected faults.
func (o *Options) kinds() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !strings.Contains(k.name, o.Only) })
}

// run returns once every fault is over, or with an error if the cluster does not recover.
func (f *faults) run(ctx context.Context) error {
	for round := range f.options.Rounds {
		for _, k := range f.options.kinds() {
			if err := retry.Sleep(ctx, f.options.Rest); err != nil {
				return err
			}
			f.Logf("round %d: %s", round+1, k.name)
			if err := f.carryOut(ctx, k); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	return retry.Sleep(ctx, f.options.Rest)
}

func (f *faults) carryOut(ctx context.Context, k kind) error {
	f.events = append(f.events, &Event{Fault: k.name})
	if err := k.do(f, ctx); err != nil {
		return err
	}
	if err := f.await(ctx, "the cluster to recover", f.checkCluster); err != nil {
		return err
	}
	event := f.event()
	event.Recovered = time.Now()
	f.Logf("the cluster recovered after %.1f s", event.Recovered.Sub(event.Began).Seconds())
	return nil
}

func (f *faults) event() *Event { return f.events[len(f.events)-1] }

// begin records the member that the fault happens to and the time.
func (f *faults) begin(member string) {
	f.event().Member, f.event().Began = member, time.Now()
	f.Logf("%s", member)
}

func (f *faults) note(format string, args ...any) {
	f.event().Notes = append(f.event().Notes, fmt.Sprintf(format, args...))
}

func (f *faults) killLeader(ctx context.Context) error {
	leader, err := f.leader(ctx)
	if err != nil {
		return err
	}
	return f.interrupt(ctx, leader, (*container).kill, (*container).restart)
}

func (f *faults) disconnectLeader(ctx context.Context) error {
	leader, err := f.leader(ctx)
	if err != nil {
		return err
	}
	return f.interrupt(ctx, leader, (*container).disconnect, (*container).reconnect)
}

// disconnectWorker disconnects a different worker each time.
func (f *faults) disconnectWorker(ctx context.Context) error {
	worker := f.members[workerRole.members()[len(f.events)%workerRole.count]]
	return f.interrupt(ctx, worker, (*container).disconnect, (*container).reconnect)
}

func (f *faults) interrupt(
	ctx context.Context, c *container, remove, restore func(*container, context.Context) error,
) error {
	f.begin(c.member)
	if err := remove(c, ctx); err != nil {
		return err
	}
	if err := retry.Sleep(ctx, f.options.Down); err != nil {
		return err
	}
	return restore(c, ctx)
}

// killPrimary kills the primary, whose data is lost too.
func (f *faults) killPrimary(ctx context.Context) error {
	return f.replacePrimary(ctx, (*container).kill)
}

// disconnectPrimary leaves the primary running: connections to it hang, and it would still accept writes.
func (f *faults) disconnectPrimary(ctx context.Context) error {
	return f.replacePrimary(ctx, (*container).disconnect)
}

// replacePrimary removes the primary and promotes the standby. Once the service uses the promoted server, the old
// primary is replaced by a standby without data.
func (f *faults) replacePrimary(ctx context.Context, remove func(*container, context.Context) error) error {
	primary, standby := f.database.primary, f.database.standby
	if f.options.Asynchronous {
		if err := f.loseStandby(ctx, standby); err != nil {
			return err
		}
	}
	f.begin(primary.member)
	if err := remove(primary, ctx); err != nil {
		return err
	}
	if f.options.Asynchronous {
		if err := standby.reconnect(ctx); err != nil {
			return err
		}
	}
	if err := f.promote(ctx); err != nil {
		return err
	}
	if err := retry.Sleep(ctx, f.options.Down); err != nil {
		return err
	}
	return f.addStandby(ctx, primary.member)
}

// loseStandby disconnects the asynchronous standby while the primary continues to commit.
func (f *faults) loseStandby(ctx context.Context, standby *container) error {
	if err := standby.disconnect(ctx); err != nil {
		return err
	}
	return retry.Sleep(ctx, f.options.Down)
}

// promote promotes the standby as an operator does, and waits until workers store readings on it and all processes are
// ready.
func (f *faults) promote(ctx context.Context) error {
	if err := retry.Sleep(ctx, f.options.Detect); err != nil {
		return err
	}
	f.event().Promoted = time.Now()
	if err := f.database.promote(ctx); err != nil {
		return err
	}
	f.Logf("%s is the primary", f.database.primary.member)
	if err := f.await(ctx, "a batch on the promoted server", f.checkStored); err != nil {
		return err
	}
	return f.await(ctx, "the service to use the promoted server", f.checkReady)
}

var errNothingStored = errors.New("nothing was stored after the promotion")

func (f *faults) checkStored(ctx context.Context) error {
	return f.database.query(ctx, f.database.primary, func(ctx context.Context, conn *pgx.Conn) error {
		var stored bool
		const sql = "SELECT EXISTS (SELECT FROM readings WHERE ingested_at > $1)"
		err := conn.QueryRow(ctx, sql, f.event().Promoted).Scan(&stored)
		if err == nil && !stored {
			err = errNothingStored
		}
		return err
	})
}
