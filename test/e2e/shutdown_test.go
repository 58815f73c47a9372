package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// sender posts uploads of one unit, with one reading each that no other upload has.
type sender struct {
	unit      string
	confirmed []int // numbers of the uploads that were answered with 202
}

// run posts uploads until stop is closed. It signals each upload that was confirmed, if somebody waits for it.
func (s *sender) run(e *streamEnv, stop <-chan struct{}, confirmed chan<- struct{}) {
	padding := strings.Repeat("x", 5<<10) // Too large for the priority lane, through which an upload is stored twice.
	for n := 0; ; n++ {
		got := e.upload(fmt.Sprintf(`{"hardware_id":%q,"padding":%q,"readings":[{"measured_at":%q,"co2_ppm":%d}]}`, s.unit, padding, bucketAt(n), n%1000))
		if got.err == nil && got.status == http.StatusAccepted {
			s.confirmed = append(s.confirmed, n)
			select {
			case confirmed <- struct{}{}:
			default:
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// TestShutdownUnderLoad stops receiver and worker several times under load. Each exits with code 0 in time. No upload
// that was answered with 202 is lost, and none is written twice, because everything that is stored is acknowledged.
func TestShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	const rounds, senders = 10, 8
	e := newStreamEnv(t)
	list := make([]sender, senders)
	for i := range list {
		list[i].unit = fmt.Sprint("dev:", i+1)
		e.newDevice(list[i].unit)
	}
	e.exec(`CREATE TABLE written (device_id uuid, bucket_at timestamptz);
		CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
			$$ BEGIN INSERT INTO written VALUES (NEW.device_id, NEW.bucket_at); RETURN NEW; END $$;
		CREATE TRIGGER note_write BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION note_write()`)
	e.receiver = e.start("ingest", "--no-worker")
	worker := e.start("ingest", "--no-receiver")
	for _, s := range []*server{e.receiver, worker} {
		require.NoError(t, s.Signal(syscall.SIGHUP))
		require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "ignored SIGHUP") }, patience, pollEvery)
	}
	stop, confirmed := make(chan struct{}), make(chan struct{})
	var load sync.WaitGroup
	for i := range list {
		load.Go(func() { list[i].run(e, stop, confirmed) })
	}
	for range rounds {
		for range 5 * senders {
			<-confirmed
		}
		var group errgroup.Group
		for _, s := range []*server{e.receiver, worker} {
			group.Go(func() error {
				_, err := s.Stop(patience)
				return err
			})
		}
		require.NoError(t, group.Wait())
		e.restart(e.receiver)
		e.restart(worker)
	}
	close(stop)
	load.Wait()
	e.settle()
	for _, s := range list {
		require.NotEmpty(t, s.confirmed)
		require.Equal(t, len(s.confirmed), value[int](e.env, `SELECT count(*) FROM unnest($2::integer[]) n
			JOIN devices d ON d.hardware_id = $1
			JOIN readings r ON r.device_id = d.id AND r.bucket_at = $3::timestamptz + n * interval '5 minutes'
				AND r.co2_ppm = n % 1000`, s.unit, s.confirmed, firstBucket), s.unit)
	}
	readings := value[int](e.env, "SELECT count(*) FROM readings")
	require.Equal(t, readings, value[int](e.env, "SELECT count(*) FROM written"), "none was written twice")
	require.Equal(t, e.stream().CachedInfo().State.LastSeq, uint64(readings), "each upload has one reading")
}
