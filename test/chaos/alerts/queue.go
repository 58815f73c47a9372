package alerts

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

func stopQueue(_ context.Context, e *env) error {
	_, err := e.nats.Stop(stopTimeout)
	return err
}

func startQueue(ctx context.Context, e *env) error { return e.nats.Restart(ctx) }

func stopDatabase(ctx context.Context, e *env) error { return postgres.Stop(ctx, e.database.DataDir) }

func startDatabase(ctx context.Context, e *env) error { return e.restartDatabase(ctx) }

// padded returns an upload with one reading and so many bytes of a member that the service does not know.
func padded(hardwareID string, at time.Time, size int) []byte {
	random := make([]byte, size/2)
	_, _ = rand.Read(random) // It never returns an error.
	return fmt.Appendf(nil, `{"hardware_id":"%s","readings":[{"measured_at":"%s","co2_ppm":400}],"padding":"%x"}`+"\n",
		hardwareID, roomsensor.FormatTime(at), random)
}

const (
	// bigUpload is a hundredth of a stream of 32 MiB.
	bigUpload = 320 << 10
	// fillCount of them are more than three quarters of it.
	fillCount = 85
	// fillPause is the pause between uploads that fill a stream.
	fillPause = 50 * time.Millisecond
	// keepPause is so long that the stream grows by an eighth between two purges, from 80 % to 92 %.
	keepPause = 800 * time.Millisecond
)

// postBig sends a large upload of a device of the team.
func postBig(ctx context.Context, e *env) {
	body := padded(e.team.devices[0].HardwareID, e.load.from.Add(-time.Hour), bigUpload)
	e.load.post(ctx, e.team.credentials[0], bytes.NewReader(body))
}

func fillStream(ctx context.Context, e *env) error {
	postBig(ctx, e)
	return sleep(ctx, fillPause)
}

func fillThreeQuarters(ctx context.Context, e *env) error {
	for range fillCount {
		postBig(ctx, e)
	}
	return ctx.Err()
}

func keepFilling(ctx context.Context, e *env) error {
	postBig(ctx, e)
	return sleep(ctx, keepPause)
}

// sleep returns nil also when the fault is over.
func sleep(ctx context.Context, d time.Duration) error {
	_ = retry.Sleep(ctx, d) // The caller checks ctx.
	return nil
}

// raiseStream returns a repair that raises STREAM_MAX_BYTES and restarts a receiver, as the runbook says. The other
// processes get the setting for their next start.
func raiseStream(size string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		for _, p := range e.processes {
			p.settings = append(p.settings, "STREAM_MAX_BYTES="+size)
		}
		return e.processes[receiverName].restart(ctx)
	}
}

// startAndRaise starts the database again and raises the limit of the stream.
func startAndRaise(ctx context.Context, e *env) error {
	return errors.Join(startDatabase(ctx, e), raiseStream("64MiB")(ctx, e))
}

// loseStream replaces the disk of NATS while the workers do not run, so that they find another stream, or none, at
// their start.
func loseStream(ctx context.Context, e *env) error {
	workers := []*process{e.processes[workerName], e.processes[secondName]}
	for _, p := range workers {
		if err := p.stop(); err != nil {
			return err
		}
	}
	err := stopQueue(ctx, e)
	err = errors.Join(err, os.RemoveAll(filepath.Join(e.natsDir, "jetstream")), startQueue(ctx, e))
	for _, p := range workers {
		err = errors.Join(err, p.launch())
	}
	return err
}

// confirmStream continues with a new stream of the same size, and restarts the receiver, which refuses uploads.
func confirmStream(ctx context.Context, e *env) error {
	size := e.processes[workerName].setting("STREAM_MAX_BYTES")
	if _, err := e.command(ctx, "stream", "confirm", "--stream-max-bytes", size); err != nil {
		return err
	}
	return e.processes[receiverName].restart(ctx)
}
