package deploy

import (
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func selects(t *testing.T, selector *meta.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := meta.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return s.Matches(labels.Set(of))
}

// traffic is what all policies together allow a pod: ports, each with the namespace that may connect or be
// connected to.
type traffic struct{ in, out []string }

const (
	system   = "kubernetes.io/metadata.name=kube-system"
	clients  = "roomsensor/clients=allowed"
	watchers = "roomsensor/ops=allowed"
	database = "5432 roomsensor/database=allowed"
	queue    = "4222 roomsensor/queue=allowed"
	mail     = " roomsensor/mail=allowed"
	broker   = " roomsensor/broker=allowed"
)

func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	names := []string{"53 " + system, "53 " + system} // UDP and TCP.
	want := map[string]traffic{
		"api":       {in: []string{"http " + clients, "ops " + watchers}, out: append([]string{database}, names...)},
		"dashboard": {in: []string{"http " + clients, "ops " + watchers}, out: append([]string{database}, names...)},
		"mqtt":      {in: []string{"ops " + watchers}, out: append([]string{database, queue, "1883" + broker, "8883" + broker}, names...)},
		"notify":    {in: []string{"ops " + watchers}, out: append([]string{database, "25" + mail, "465" + mail, "587" + mail}, names...)},
		"receiver":  {in: []string{"http " + clients, "ops " + watchers}, out: append([]string{database, queue}, names...)},
		"ingest":    {in: []string{"ops " + watchers}, out: append([]string{database, queue}, names...)},
		"migrate":   {out: append([]string{database}, names...)},
	}
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		for name, pod := range m.pods() {
			got := trafficOf(t, m, pod)
			require.ElementsMatch(t, want[name].in, got.in, name)
			require.ElementsMatch(t, want[name].out, got.out, name)
		}
	})
}

// trafficOf returns what the policies allow a pod. It requires that policies cover the pod in both directions, and that
// each open port is a port of the pod.
func trafficOf(t *testing.T, m *manifests, pod *core.PodTemplateSpec) (r traffic) {
	t.Helper()
	var covered []networking.PolicyType
	for _, policy := range m.policies {
		if !selects(t, &policy.Spec.PodSelector, pod.Labels) {
			continue
		}
		covered = append(covered, policy.Spec.PolicyTypes...)
		for _, rule := range policy.Spec.Ingress {
			require.Contains(t, policy.Spec.PolicyTypes, networking.PolicyTypeIngress, policy.Name)
			r.in = append(r.in, opened(t, policy.Name, rule.Ports, rule.From)...)
			for _, port := range rule.Ports {
				requirePort(t, pod, port.Port.String())
			}
		}
		for _, rule := range policy.Spec.Egress {
			require.Contains(t, policy.Spec.PolicyTypes, networking.PolicyTypeEgress, policy.Name)
			r.out = append(r.out, opened(t, policy.Name, rule.Ports, rule.To)...)
		}
	}
	require.Contains(t, covered, networking.PolicyTypeIngress)
	require.Contains(t, covered, networking.PolicyTypeEgress)
	return r
}

// opened lists each port with each namespace. A rule without ports, without peers or for all peers would allow too
// much.
func opened(
	t *testing.T, policy string, ports []networking.NetworkPolicyPort, peers []networking.NetworkPolicyPeer,
) (list []string) {
	t.Helper()
	require.NotEmpty(t, ports, policy)
	require.NotEmpty(t, peers, policy)
	for _, port := range ports {
		require.Nil(t, port.EndPort, policy)
		for _, peer := range peers {
			require.NotNil(t, peer.NamespaceSelector, policy)
			require.NotEmpty(t, peer.NamespaceSelector.MatchLabels, policy)
			require.Nil(t, peer.IPBlock, policy)
			list = append(list, port.Port.String()+" "+meta.FormatLabelSelector(peer.NamespaceSelector))
		}
	}
	return list
}

// TestDefaultDeny checks that everything that no other policy allows is denied, for all pods.
func TestDefaultDeny(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		nothing := m.policies["roomsensor-nothing"].Spec
		require.Empty(t, nothing.PodSelector)
		require.Empty(t, nothing.Ingress)
		require.Empty(t, nothing.Egress)
		require.ElementsMatch(t, []networking.PolicyType{"Ingress", "Egress"}, nothing.PolicyTypes)
	})
}
