package alerts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/retry"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// fault is what goes wrong in an installation.
type fault struct {
	does   string
	alerts []string // that it must fire
	// inject causes the fault. If it is repeated, it is called again whenever it returns, until the alerts have fired.
	inject   func(context.Context, *env) error
	repeated bool
	repair   func(context.Context, *env) error // removes it; nil if it ends by itself
}

// faults returns a fault for each source of metrics: the queue, the targets of Prometheus, the durations of requests, the
// readings of uploads, and the database with the answers of requests.
func faults() []*fault {
	return []*fault{
		{
			does: "NATS stops", alerts: []string{"RoomsensorQueueUnavailable", "RoomsensorReceiverErrors"},
			inject: func(_ context.Context, e *env) error { _, err := e.nats.Stop(harness.StopTimeout); return err },
			repair: func(ctx context.Context, e *env) error { return e.nats.Restart(ctx) },
		},
		{
			does: "the API stops and is not started again", alerts: []string{"RoomsensorAbsent"},
			inject: func(_ context.Context, e *env) error { e.processes[apiName].Kill(); return nil },
			repair: func(ctx context.Context, e *env) error { return e.processes[apiName].Start(ctx) },
		},
		{
			does:   "the machine of the database stands still for 2.8 seconds at a time",
			alerts: []string{"RoomsensorAPISlow", "RoomsensorDashboardSlow"}, inject: stallDatabase, repeated: true,
		},
		{
			does: "devices have a wrong clock", alerts: []string{"RoomsensorRejectsRise"}, inject: sendFuture, repeated: true,
		},
		{
			does: "the database stops",
			alerts: []string{
				"RoomsensorDatabaseUnavailable", "RoomsensorNotReady", "RoomsensorAPIErrors", "RoomsensorDashboardErrors",
			},
			inject: func(ctx context.Context, e *env) error { return postgres.Stop(ctx, e.database.DataDir) },
			repair: func(ctx context.Context, e *env) error { return e.restartDatabase(ctx) },
		},
	}
}

const (
	// stall is longer than the threshold of the alerts, 2.5 seconds, and shorter than the timeouts of the service.
	stall = 2800 * time.Millisecond
	// respite is the time between two stalls.
	respite = 400 * time.Millisecond
)

// stallDatabase suspends all processes of PostgreSQL for a while.
func stallDatabase(ctx context.Context, e *env) error {
	postmaster, container, err := postgres.Processes(e.database.DataDir)
	if err != nil {
		return err
	}
	if container != "" {
		return errors.New("the database runs in a container, whose processes cannot be suspended")
	}
	if err := signalAll([]int{postmaster}, syscall.SIGSTOP); err != nil { // It then starts no process.
		return err
	}
	pids := append([]int{postmaster}, proctest.Children(postmaster)...)
	err = signalAll(pids, syscall.SIGSTOP)
	_ = retry.Sleep(ctx, stall) // The processes continue in any case.
	if err := errors.Join(err, signalAll(pids, syscall.SIGCONT)); err != nil {
		return err
	}
	_ = retry.Sleep(ctx, respite) // The caller checks ctx.
	return nil
}

func signalAll(pids []int, s syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %s to process %d: %w", s, pid, err)
		}
	}
	return nil
}

// sendFuture sends a reading of a device whose clock is two years ahead.
func sendFuture(ctx context.Context, e *env) error {
	at := time.Now().AddDate(2, 0, 0)
	e.load.post(ctx, bytes.NewReader(uploadOf(e.devices[1].HardwareID, at)))
	_ = retry.Sleep(ctx, uploadPause) // The caller checks ctx.
	return nil
}
