package deploy

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	policy "k8s.io/api/policy/v1"
)

func TestSelectors(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		for name, d := range m.deployments {
			for other, pod := range m.pods() {
				own := reflect.DeepEqual(pod, &d.Spec.Template)
				require.Equal(t, own, selects(t, d.Spec.Selector, pod.Labels), "%s, %s", name, other)
			}
		}
	})
}

// single is the deployment with one replica: two would take the session at the broker from each other, and the broker
// keeps the messages while none runs.
const single = "roomsensor-mqtt"

// TestBudgets checks that a node can be drained while at least one pod of each deployment but the single one stays.
func TestBudgets(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		require.Len(t, m.budgets, 5)
		for name, d := range m.deployments {
			if name == single {
				require.Equal(t, int32(1), minReplicas(m, d))
				require.Nil(t, m.budgets[name])
				continue
			}
			budget := m.budgets[name]
			require.NotNil(t, budget, name)
			for other, pod := range m.pods() {
				require.Equal(t, pod.Labels[component] == d.Spec.Template.Labels[component],
					selects(t, budget.Spec.Selector, pod.Labels), "%s, %s", name, other)
			}
			require.Equal(t, policy.AlwaysAllow, *budget.Spec.UnhealthyPodEvictionPolicy, name)
			require.Positive(t, budget.Spec.MaxUnavailable.IntValue(), name)
			require.Less(t, int32(budget.Spec.MaxUnavailable.IntValue()), minReplicas(m, d), name)
		}
	})
}

// minReplicas returns the minimum number of replicas of a deployment.
func minReplicas(m *manifests, d *apps.Deployment) int32 {
	for _, scaled := range m.scaled {
		if scaled.Spec.ScaleTargetRef.Name == d.Name {
			return *scaled.Spec.MinReplicaCount
		}
	}
	return *d.Spec.Replicas
}

// scalerSettings are the settings of KEDA's scaler (pkg/scalers/nats_jetstream_scaler.go of the version in go.mod).
var scalerSettings = []string{
	"natsServerMonitoringEndpoint", "account", "accountID", "stream", "consumer",
	"lagThreshold", "activationLagThreshold", "useHttps",
}

func TestAutoscaler(t *testing.T) {
	t.Parallel()
	require.Empty(t, render(t, "base").scaled, "not every cluster has KEDA")
	m := render(t, "example")
	require.Len(t, m.scaled, 1)
	scaled := m.scaled["roomsensor-ingest"].Spec
	target := m.deployments[scaled.ScaleTargetRef.Name]
	require.Equal(t, "ingest", target.Spec.Template.Labels[component])
	require.Nil(t, target.Spec.Replicas, "the autoscaler alone decides")
	require.Positive(t, *scaled.MinReplicaCount)
	require.Less(t, *scaled.MinReplicaCount, *scaled.MaxReplicaCount)
	require.LessOrEqual(t, *scaled.MinReplicaCount, scaled.Fallback.Replicas)
	require.Len(t, scaled.Triggers, 1)
	require.Equal(t, "nats-jetstream", scaled.Triggers[0].Type)
	metadata := scaled.Triggers[0].Metadata
	for name := range metadata {
		require.Contains(t, scalerSettings, name)
	}
	require.NotEmpty(t, metadata["account"])
	require.Regexp(t, `^[a-z.-]+:\d+$`, metadata["natsServerMonitoringEndpoint"])
	lag, err := strconv.Atoi(metadata["lagThreshold"])
	require.NoError(t, err)
	require.Positive(t, lag)
}
