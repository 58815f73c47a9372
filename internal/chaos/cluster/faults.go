package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/chaos/trial"
)

// Event is a fault that happened.
type Event struct {
	Fault string `json:"fault"`
	Whom  string `json:"whom"`
	// Began is when it happened, and Whole when the cluster was whole again.
	Began time.Time `json:"began"`
	Whole time.Time `json:"whole"`
	// Promoted is when the standby was told to take over, where it was.
	Promoted time.Time `json:"promoted,omitzero"`
	Notes    []string  `json:"notes,omitempty"`
}

// faults carries out all faults, one after the other: none before the cluster is whole again.
type faults struct {
	*world
	events []*Event
}

// kind is a kind of fault.
type kind struct {
	name   string
	happen func(*faults, context.Context) error
}

// kinds are those of one round. The last two take the primary from the cluster, and give it another standby.
var kinds = []kind{
	{"kill the leader of the stream", (*faults).killLeader},
	{"cut the leader of the stream off", (*faults).cutLeader},
	{"cut a worker off", (*faults).cutWorker},
	{"kill an API in the middle of a CSV", (*faults).breakExport},
	{"kill the primary, promote the standby", (*faults).killPrimary},
	{"cut the primary off, promote the standby", (*faults).cutPrimary},
}

// kinds are those that happen.
func (o *Options) kinds() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !strings.Contains(k.name, o.Only) })
}

// run returns once every fault has happened and is over, or the first that the cluster did not get over.
func (f *faults) run(ctx context.Context) error {
	for round := range f.options.Rounds {
		for _, k := range f.options.kinds() {
			if err := trial.Pause(ctx, f.options.Rest); err != nil {
				return err
			}
			f.Say("round %d: %s", round+1, k.name)
			if err := f.carryOut(ctx, k); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	return trial.Pause(ctx, f.options.Rest)
}

func (f *faults) carryOut(ctx context.Context, k kind) error {
	f.events = append(f.events, &Event{Fault: k.name})
	if err := k.happen(f, ctx); err != nil {
		return err
	}
	if err := f.await(ctx, "the whole cluster", f.whole); err != nil {
		return err
	}
	event := f.event()
	event.Whole = time.Now()
	f.Say("the cluster is whole after %.1f s", event.Whole.Sub(event.Began).Seconds())
	return nil
}

func (f *faults) event() *Event { return f.events[len(f.events)-1] }

// hit notes to whom the fault happens, now.
func (f *faults) hit(member string) {
	f.event().Whom, f.event().Began = member, time.Now()
	f.Say("%s", member)
}

func (f *faults) note(format string, args ...any) {
	f.event().Notes = append(f.event().Notes, fmt.Sprintf(format, args...))
}

func (f *faults) killLeader(ctx context.Context) error {
	leader, err := f.leader(ctx)
	if err != nil {
		return err
	}
	f.hit(leader.member)
	if err := leader.kill(ctx); err != nil {
		return err
	}
	if err := trial.Pause(ctx, f.options.Down); err != nil {
		return err
	}
	return leader.restart(ctx)
}

func (f *faults) cutLeader(ctx context.Context) error {
	leader, err := f.leader(ctx)
	if err != nil {
		return err
	}
	return f.cutOff(ctx, leader)
}

// cutWorker takes another worker each time.
func (f *faults) cutWorker(ctx context.Context) error {
	return f.cutOff(ctx, f.members[workerMember(len(f.events)%workerCount)])
}

func (f *faults) cutOff(ctx context.Context, c *container) error {
	f.hit(c.member)
	if err := c.cut(ctx); err != nil {
		return err
	}
	if err := trial.Pause(ctx, f.options.Down); err != nil {
		return err
	}
	return c.join(ctx)
}

// killPrimary kills the primary, as if its machine burnt down.
func (f *faults) killPrimary(ctx context.Context) error {
	return f.replacePrimary(ctx, (*container).kill)
}

// cutPrimary leaves the primary alive where nobody reaches it: connections to it hang, and it would go on to write.
func (f *faults) cutPrimary(ctx context.Context) error {
	return f.replacePrimary(ctx, (*container).cut)
}

// replacePrimary takes the primary away, and promotes the standby. Once the service works on it, the promoted server
// gets a standby on empty disks in the place of what was there.
func (f *faults) replacePrimary(ctx context.Context, takeAway func(*container, context.Context) error) error {
	gone, heir := f.database.primary, f.database.standby
	if f.database.asynchronous {
		if err := f.leaveBehind(ctx, heir); err != nil {
			return err
		}
	}
	f.hit(gone.member)
	if err := takeAway(gone, ctx); err != nil {
		return err
	}
	if f.database.asynchronous {
		if err := heir.join(ctx); err != nil {
			return err
		}
	}
	if err := f.promote(ctx); err != nil {
		return err
	}
	if err := trial.Pause(ctx, f.options.Down); err != nil {
		return err
	}
	return f.addStandby(ctx, gone.member)
}

// leaveBehind cuts off a standby for which nobody waits, while the primary goes on to commit.
func (f *faults) leaveBehind(ctx context.Context, standby *container) error {
	if err := standby.cut(ctx); err != nil {
		return err
	}
	return trial.Pause(ctx, f.options.Down)
}

// promote does what an operator does, or the tool that does it for them, and waits until workers store on the promoted
// server and all processes say that they are ready.
func (f *faults) promote(ctx context.Context) error {
	if err := trial.Pause(ctx, f.options.Detect); err != nil {
		return err
	}
	f.event().Promoted = time.Now()
	if err := f.database.promote(ctx); err != nil {
		return err
	}
	f.Say("%s is the primary", f.database.primary.member)
	if err := f.await(ctx, "a batch on another primary", f.stores); err != nil {
		return err
	}
	return f.await(ctx, "the service on another primary", f.serviceReady)
}

var errNothingStored = errors.New("nothing was stored since the promotion")

func (f *faults) stores(ctx context.Context) error {
	return f.database.ask(ctx, f.database.primary, func(ctx context.Context, conn *pgx.Conn) error {
		var stores bool
		const question = "SELECT EXISTS (SELECT FROM readings WHERE ingested_at > $1)"
		err := conn.QueryRow(ctx, question, f.event().Promoted).Scan(&stores)
		if err == nil && !stores {
			err = errNothingStored
		}
		return err
	})
}
