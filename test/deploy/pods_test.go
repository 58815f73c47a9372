package deploy

import (
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// shutdown is the maximum time that a process takes to stop, in seconds.
const shutdown = 20

func TestComponents(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		want := m.withMQTT("api", "dashboard", "ingest", "migrate", "notify", "receiver")
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(m.pods())))
		for name, pod := range m.pods() {
			require.Len(t, pod.Spec.Containers, 1, name)
			require.Empty(t, pod.Spec.InitContainers, name)
		}
	})
}

// TestPodSecurity checks that pods meet the "restricted" standard of Kubernetes, and more.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		for name, pod := range m.pods() {
			requireNoRights(t, name, &pod.Spec)
			account := m.accounts[pod.Spec.ServiceAccountName]
			require.NotNil(t, account, name)
			require.False(t, *account.AutomountServiceAccountToken, name)
		}
	})
}

func requireNoRights(t *testing.T, name string, pod *core.PodSpec) {
	t.Helper()
	require.True(t, *pod.SecurityContext.RunAsNonRoot, name)
	require.NotZero(t, *pod.SecurityContext.RunAsUser, name)
	require.Equal(t, core.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, name)
	require.False(t, *pod.AutomountServiceAccountToken, name)
	require.False(t, *pod.EnableServiceLinks, name)
	require.False(t, pod.HostNetwork || pod.HostPID || pod.HostIPC, name)
	for _, volume := range pod.Volumes {
		require.NotNil(t, volume.ConfigMap, "%s writes no file", name)
	}
	own := pod.Containers[0].SecurityContext
	require.True(t, *own.ReadOnlyRootFilesystem, name)
	require.False(t, *own.AllowPrivilegeEscalation, name)
	require.False(t, *own.Privileged, name)
	require.Equal(t, []core.Capability{"ALL"}, own.Capabilities.Drop, name)
	require.Empty(t, own.Capabilities.Add, name)
}

// TestProbes checks that the probes use the paths and the port of the health checks.
func TestProbes(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		for name, d := range m.deployments {
			container := &d.Spec.Template.Spec.Containers[0]
			for path, probe := range map[string]*core.Probe{
				"/livez": container.LivenessProbe, "/readyz": container.ReadinessProbe,
			} {
				require.Equal(t, path, probe.HTTPGet.Path, name)
				require.Equal(t, "ops", probe.HTTPGet.Port.String(), name)
				require.LessOrEqual(t, probe.TimeoutSeconds, probe.PeriodSeconds, name)
			}
			ready := container.ReadinessProbe // Within 20 s, of which the process takes up to 12.
			require.LessOrEqual(t, 12+ready.FailureThreshold*ready.PeriodSeconds+ready.TimeoutSeconds, int32(20), name)
		}
	})
}

func TestPorts(t *testing.T) {
	t.Parallel()
	addresses := map[string]map[string]string{
		"api":       {"http": "API_ADDR", "ops": "OPS_ADDR"},
		"dashboard": {"http": "DASHBOARD_ADDR", "ops": "OPS_ADDR"},
		"receiver":  {"http": "INGEST_ADDR", "ops": "OPS_ADDR"},
		"ingest":    {"ops": "OPS_ADDR"},
		"mqtt":      {"ops": "OPS_ADDR"},
		"notify":    {"ops": "OPS_ADDR"},
		"migrate":   {},
	}
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		for name, pod := range m.pods() {
			settings := settingsOf(t, m, &pod.Spec.Containers[0])
			require.Len(t, pod.Spec.Containers[0].Ports, len(addresses[name]), name)
			for _, port := range pod.Spec.Containers[0].Ports {
				host, number, err := net.SplitHostPort(settings[addresses[name][port.Name]])
				require.NoError(t, err, "%s %s", name, port.Name)
				require.Empty(t, host, "%s: the pod's own address, which the kubelet asks", name)
				require.Equal(t, number, strconv.Itoa(int(port.ContainerPort)), "%s %s", name, port.Name)
				require.Zero(t, port.HostPort, name)
			}
		}
	})
}

// settingsOf returns the variables of a container that have a value in the manifests.
func settingsOf(t *testing.T, m *manifests, container *core.Container) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for _, from := range container.EnvFrom {
		require.NotNil(t, from.ConfigMapRef, "settings alone")
		kept := m.settings[from.ConfigMapRef.Name]
		require.NotNil(t, kept, from.ConfigMapRef.Name)
		maps.Copy(settings, kept.Data)
	}
	for _, variable := range container.Env {
		settings[variable.Name] = variable.Value
	}
	return settings
}

func TestGracePeriod(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		for name, d := range m.deployments {
			pod := &d.Spec.Template.Spec
			delay, err := time.ParseDuration(settingsOf(t, m, &pod.Containers[0])["DRAIN_DELAY"])
			require.NoError(t, err, name)
			require.Positive(t, delay, name)
			require.Greater(t, *pod.TerminationGracePeriodSeconds, shutdown+int64(delay.Seconds()), name)
			if name == single {
				require.Equal(t, apps.RecreateDeploymentStrategyType, d.Spec.Strategy.Type)
				continue
			}
			require.Zero(t, d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(), name)
			require.Positive(t, d.Spec.Strategy.RollingUpdate.MaxSurge.IntValue(), name)
		}
		require.Contains(t, []core.RestartPolicy{core.RestartPolicyNever, core.RestartPolicyOnFailure},
			m.migrate.Spec.Template.Spec.RestartPolicy)
	})
}

// TestMemory checks that Go's memory limit is below the limit at which the kernel kills the process.
func TestMemory(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		for name, pod := range m.pods() {
			container := &pod.Spec.Containers[0]
			limit := container.Resources.Limits.Memory()
			require.True(t, limit.Equal(*container.Resources.Requests.Memory()), name)
			require.False(t, container.Resources.Requests.Cpu().IsZero(), name)
			soft := settingsOf(t, m, container)["GOMEMLIMIT"]
			require.Regexp(t, `^\d+MiB$`, soft, name)
			quantity := resource.MustParse(soft[:len(soft)-1])
			share := float64(quantity.Value()) / math.Max(1, float64(limit.Value()))
			require.InDelta(t, 0.9, share, 0.05, name)
		}
	})
}

func TestSpreading(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		for name, d := range m.deployments {
			var over []string
			for _, spread := range d.Spec.Template.Spec.TopologySpreadConstraints {
				require.True(t, selects(t, spread.LabelSelector, d.Spec.Template.Labels), name)
				require.Contains(t, spread.MatchLabelKeys, component, name)
				over = append(over, spread.TopologyKey)
			}
			require.Equal(t, []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"}, over, name)
		}
	})
}

// released matches an image with a version.
var released = regexp.MustCompile(`^[a-z0-9./-]+/roomsensor:\d+\.\d+\.\d+$`)

func TestImages(t *testing.T) {
	t.Parallel()
	for name, pod := range render(t, "base").pods() {
		require.Equal(t, "roomsensor:dev", pod.Spec.Containers[0].Image, name)
	}
	for name, pod := range render(t, "example").pods() {
		require.Regexp(t, released, pod.Spec.Containers[0].Image, name)
		require.Equal(t, core.PullIfNotPresent, pod.Spec.Containers[0].ImagePullPolicy, name)
	}
}
