package deploy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selected returns the components of the pods of a Service.
func selected(m *manifests, service *core.Service) (components []string) {
	for name, pod := range m.pods() {
		if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			components = append(components, name)
		}
	}
	return components
}

// TestServices checks that clients can connect to three ports, and that the ops ports have a headless Service of their
// own, which cannot be published.
func TestServices(t *testing.T) {
	t.Parallel()
	behind := map[string][]string{
		"roomsensor-api":       {"api"},
		"roomsensor-dashboard": {"dashboard"},
		"roomsensor-receiver":  {"receiver"},
		"roomsensor-ops":       {"api", "dashboard", "ingest", "notify", "receiver"},
	}
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		require.Len(t, m.services, len(behind))
		for name, service := range m.services {
			want := behind[name]
			if name == "roomsensor-ops" {
				want = m.withMQTT(want...)
			}
			require.ElementsMatch(t, want, selected(m, service), name)
			require.Len(t, service.Spec.Ports, 1, name)
			require.Contains(t, []core.ServiceType{"", core.ServiceTypeClusterIP}, service.Spec.Type, name)
			require.Empty(t, service.Spec.ExternalIPs, name)
			port := service.Spec.Ports[0].TargetPort.String()
			for _, component := range want {
				requirePort(t, m.pods()[component], port)
			}
			require.Equal(t, name == "roomsensor-ops", port == "ops", name)
			require.Equal(t, name == "roomsensor-ops", service.Spec.ClusterIP == core.ClusterIPNone, name)
		}
	})
}

func requirePort(t *testing.T, pod *core.PodTemplateSpec, name string) {
	t.Helper()
	require.True(t, slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(port core.ContainerPort) bool {
		return port.Name == name
	}), name)
}

// TestIngress checks that the Ingress uses existing ports, and never the ops port.
func TestIngress(t *testing.T) {
	t.Parallel()
	m := render(t, "example")
	ingress := m.ingresses["roomsensor"]
	require.Len(t, ingress.Spec.Rules, 2)
	var hosts []string
	ways := map[string]string{}
	for _, rule := range ingress.Spec.Rules {
		hosts = append(hosts, rule.Host)
		for _, path := range rule.HTTP.Paths {
			service := m.services[path.Backend.Service.Name]
			require.NotNil(t, service, path.Path)
			require.Equal(t, service.Spec.Ports[0].Name, path.Backend.Service.Port.Name, path.Path)
			ways["https://"+rule.Host+path.Path] = service.Name
		}
	}
	require.Equal(t, hosts, ingress.Spec.TLS[0].Hosts)
	for _, settings := range m.settings {
		api, dashboard := settings.Data["PUBLIC_URL"], settings.Data["DASHBOARD_URL"]
		require.Equal(t, map[string]string{
			api + "/uploads": "roomsensor-receiver", api + "/rejects": "roomsensor-receiver",
			api + "/sources": "roomsensor-receiver", api + "/": "roomsensor-api", dashboard + "/": "roomsensor-dashboard",
		}, ways)
	}
}
