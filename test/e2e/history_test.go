package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
)

const (
	historyDevices = 3
	historyClients = 6
	// historySteps is the most steps of a client: at most 2 requests each, and half of the clients share a key, which has
	// 600 requests.
	historySteps = 90
	// repeatAfter is the time after which a client sends a change again. Meanwhile others change the device.
	repeatAfter = 50 * time.Millisecond
	// keyLag is the time for which a replica may admit a revoked key (decision 24 k).
	keyLag = 5 * time.Second
)

// step is the input of an operation on an object: a device, or a key at one replica.
type step struct{ object, action, value string }

// seen is the state of an object, and the output of an operation that reads it.
type seen struct {
	name, label string // of a device, and of its open assignment
	readings    int
	revoked     bool
}

// historyModel says what one copy of the service, which executes one step at a time, would answer. A history is
// linearizable if its steps could have been executed there, each between its call and its return.
var historyModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		index := map[string]int{}
		for _, op := range history {
			object := op.Input.(step).object
			at, known := index[object]
			if !known {
				at, index[object] = len(parts), len(parts)
				parts = append(parts, nil)
			}
			parts[at] = append(parts[at], op)
		}
		return parts
	},
	Init: func() any { return seen{} },
	Step: func(state, input, output any) (bool, any) {
		next, in := state.(seen), input.(step)
		out, _ := output.(seen) // A step that only writes has no output.
		switch in.action {
		case "patch": // It returns the device after the change.
			next.name = in.value
			return out.name == next.name && out.label == next.label, next
		case "get":
			return out.name == next.name && out.label == next.label, next
		case "transfer":
			next.label = in.value
		case "store":
			next.readings++
		case "count":
			return out.readings == next.readings, next
		case "revoke":
			next.revoked = true
		case "use":
			return out.revoked == next.revoked, next
		}
		return true, next
	},
}

// history records what clients of two replicas did and saw.
type history struct {
	*env

	began   time.Time
	devices []string
	keys    []string // of the clients
	revoked string   // a key that is revoked meanwhile
	stored  atomic.Int64

	mu         sync.Mutex
	operations []porcupine.Operation
	failures   []error
}

// TestHistory checks that clients of two replicas, which read from a standby that lags behind, cannot tell them from one
// server that executes one request at a time: while they change and read devices and readings, an operator transfers
// assignments and revokes a key, and one replica is killed and started again. It takes 10 s, most of them for the
// databases.
func TestHistory(t *testing.T) {
	t.Parallel()
	primary := dbtest.NewPrimary(t)
	standby := primary.NewStandby("recovery_min_apply_delay = '30ms'")
	h := &history{env: newEnvOn(t, primary.URL), began: time.Now()}
	h.settings["READ_DATABASE_URL"] = standby.As(t, roleOf([]string{"api"}))
	h.apis = []*server{h.start("api"), h.start("api")}
	id, key := h.newKey()
	h.revoked = key
	for range 2 {
		_, key := h.newKey()
		h.keys = append(h.keys, key)
	}
	for i := range historyDevices {
		h.devices = append(h.devices, h.newDevice("dev:"+strconv.Itoa(i+1)))
	}
	seed := rand.Uint64()
	t.Log("seed", seed) // It is printed if the test fails. It repeats the steps, not how they overlap.

	done := make(chan struct{})
	var clients sync.WaitGroup
	for i := range historyClients {
		clients.Go(func() { h.runClient(done, i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	h.operate(id)
	close(done)
	clients.Wait()

	require.NoError(t, errors.Join(h.failures...))
	metrics, err := proctest.Metrics(t.Context(), h.apis[0].ops)
	require.NoError(t, err)
	reads := metrics["roomsensor_database_standby_reads_total"].GetMetric()
	require.NotEmpty(t, reads)
	require.Positive(t, reads[0].GetCounter().GetValue(), "the standby was used")
	t.Log(len(h.operations), "operations")
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(historyModel, h.operations, patience),
		"the history is not linearizable: %+v", h.operations)
}

// record runs an operation. Without an output, it did not happen.
func (h *history) record(client int, in step, run func() (output any, err error)) {
	call := time.Since(h.began)
	output, err := run()
	end := time.Since(h.began)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.failures = append(h.failures, fmt.Errorf("%+v: %w", in, err))
	}
	if output != nil {
		h.operations = append(h.operations, porcupine.Operation{
			ClientId: client, Input: in, Call: int64(call), Output: output, Return: int64(end),
		})
	}
}

// operate does what an operator does: the clients go on meanwhile.
func (h *history) operate(keyID string) {
	assignments := make([]string, historyDevices)
	transfer := func(label string) {
		for i, device := range h.devices {
			args := []string{"assignment", "start", device}
			if assignments[i] != "" {
				args = []string{"assignment", "transfer", assignments[i]}
			}
			label := fmt.Sprint(label, i)
			h.record(historyClients, step{device, "transfer", label}, func() (any, error) {
				assignments[i] = h.field("assignment_id", append(args, "--type", "place", "--label", label, "--yes")...)
				return seen{}, nil
			})
		}
	}
	transfer("Dorm ")
	h.apis[1].Kill()
	transfer("Gym ")
	h.restart(h.apis[1])
	h.revoke(keyID)
	transfer("Pool ")
}

// revoke revokes the key. Each replica may refuse it from the call on, and admit it until keyLag after the end.
func (h *history) revoke(keyID string) {
	call := time.Since(h.began)
	h.command("key", "revoke", keyID)
	end := time.Since(h.began) + keyLag
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.apis {
		h.operations = append(h.operations, porcupine.Operation{
			ClientId: historyClients, Input: step{h.keyAt(i), "revoke", ""}, Call: int64(call), Output: seen{}, Return: int64(end),
		})
	}
}

func (h *history) keyAt(replica int) string { return fmt.Sprint("key at replica ", replica) }

// runClient takes steps until the operator is done.
func (h *history) runClient(done <-chan struct{}, client int, random *rand.Rand) {
	for n := range historySteps {
		device, replica := h.devices[random.IntN(historyDevices)], random.IntN(len(h.apis))
		key := h.keys[client%len(h.keys)]
		switch random.IntN(10) {
		case 0, 1:
			name := fmt.Sprintf("name %d of client %d", n, client)
			h.record(client, step{device, "patch", name}, func() (any, error) {
				return h.patchOnce(device, name, key, replica, random.IntN(3) == 0)
			})
		case 2, 3, 4:
			h.record(client, step{device, "get", ""}, func() (any, error) {
				return h.deviceIn(h.send(h.apis[replica], http.MethodGet, "/v1/devices/"+device, key, ""), replica)
			})
		case 5:
			h.record(client, step{device, "store", ""}, func() (any, error) { return seen{}, h.store(device) })
		case 6, 7, 8:
			h.record(client, step{device, "count", ""}, func() (any, error) {
				return h.countIn(h.send(h.apis[replica], http.MethodGet, "/v1/devices/"+device+
					"/readings?from=2026-01-01T00:00:00Z&to=2026-01-08T00:00:00Z&limit=1000", key, ""), replica)
			})
		case 9:
			h.record(client, step{h.keyAt(replica), "use", ""}, func() (any, error) {
				return h.useIn(h.send(h.apis[replica], http.MethodGet, "/v1/team", h.revoked, ""), replica)
			})
		}
		select {
		case <-done:
			return
		case <-time.After(time.Duration(random.IntN(30)) * time.Millisecond): // So that the steps last as long as the operator.
		}
	}
}

// patchOnce names a device. As clients do, it sends the request again to the other replica if no answer comes; again
// sends it there in any case. The Idempotency-Key makes it one change.
func (h *history) patchOnce(device, name, key string, replica int, again bool) (any, error) {
	send := func(replica int) (any, error) {
		return h.deviceIn(h.send(h.apis[replica], http.MethodPatch, "/v1/devices/"+device, key, `{"display_name":"`+name+`"}`,
			"Content-Type: application/json", "Idempotency-Key: "+name), replica)
	}
	first, err := send(replica)
	if err != nil || first != nil && !again {
		return first, err
	}
	<-time.After(repeatAfter)
	for other := 1 - replica; ; other = 1 - other {
		second, err := send(other)
		if err != nil || second == nil {
			if err != nil || other == 0 {
				return nil, errors.Join(errors.New("no answer"), err) // The first replica always runs.
			}
			continue
		}
		if first != nil && first != second {
			return nil, fmt.Errorf("the second answer is %+v, not %+v", second, first)
		}
		return second, nil
	}
}

// store stores another reading.
func (h *history) store(device string) error {
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(h.stored.Add(1)) * time.Minute * 5)
	_, err := h.sql.Exec(h.t.Context(),
		"INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, $2, 500)", device, at)
	return err
}

// deviceIn returns what a response says of a device. It is nil if the replica was killed meanwhile.
func (h *history) deviceIn(r response, replica int) (any, error) {
	var body struct {
		Name       *string `json:"display_name"`
		Assignment *struct {
			Label string `json:"label"`
		} `json:"active_assignment"`
	}
	if ok, err := answered(r, replica, &body); !ok {
		return nil, err
	}
	var out seen
	if body.Name != nil {
		out.name = *body.Name
	}
	if body.Assignment != nil {
		out.label = body.Assignment.Label
	}
	return out, nil
}

func (h *history) countIn(r response, replica int) (any, error) {
	var body struct {
		Data []any `json:"data"`
	}
	if ok, err := answered(r, replica, &body); !ok {
		return nil, err
	}
	return seen{readings: len(body.Data)}, nil
}

func (h *history) useIn(r response, replica int) (any, error) {
	if r.status == http.StatusUnauthorized {
		return seen{revoked: true}, nil
	}
	if ok, err := answered(r, replica, new(any)); !ok {
		return nil, err
	}
	return seen{}, nil
}

// answered decodes the body of a response. Only the second replica, which is killed, may fail to answer.
func answered(r response, replica int, body any) (bool, error) {
	switch {
	case r.err != nil && replica == 1:
		return false, nil
	case r.err != nil:
		return false, r.err
	case r.status != http.StatusOK:
		return false, fmt.Errorf("status %d: %s", r.status, r.body)
	}
	return true, json.Unmarshal([]byte(r.body), body)
}

// TestHistoryModel checks that the model refuses the histories that it is for.
func TestHistoryModel(t *testing.T) {
	t.Parallel()
	type op = porcupine.Operation
	for name, ops := range map[string][]op{
		"stale read at the other replica": {
			{Input: step{"d", "store", ""}, Output: seen{}, Call: 0, Return: 1},
			{Input: step{"d", "count", ""}, Output: seen{}, Call: 2, Return: 3},
		},
		"lost update": {
			{Input: step{"d", "patch", "A"}, Output: seen{name: "A"}, Call: 0, Return: 1},
			{Input: step{"d", "patch", "B"}, Output: seen{name: "B"}, Call: 2, Return: 3},
			{Input: step{"d", "get", ""}, Output: seen{name: "A"}, Call: 4, Return: 5},
		},
		"half of a change": {
			{Input: step{"d", "transfer", "Dorm"}, Output: seen{}, Call: 0, Return: 1},
			{Input: step{"d", "patch", "A"}, Output: seen{name: "A"}, Call: 2, Return: 3},
		},
		"revoked key admitted again": {
			{Input: step{"k", "revoke", ""}, Output: seen{}, Call: 0, Return: 9},
			{Input: step{"k", "use", ""}, Output: seen{revoked: true}, Call: 2, Return: 3},
			{Input: step{"k", "use", ""}, Output: seen{}, Call: 4, Return: 5},
		},
	} {
		require.Equal(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(historyModel, ops, patience), name)
	}
}
