package compress

import (
	"strconv"
	"strings"
)

// Choose picks the coding that the lines of an Accept-Encoding header like
// best (RFC 9110, 12.5.3); of equals, the one that compresses better.
func Choose(accept []string) Coding {
	weights := weigh(accept)
	best, most := Identity, weights["identity"]
	for _, coding := range []Coding{Gzip, Zstd} {
		weight, named := weights[string(coding)]
		if !named {
			weight = weights["*"]
		}
		if weight > 0 && weight >= most {
			best, most = coding, weight
		}
	}
	return best
}

// weigh reads the weight of each coding, by its name in lower case.
func weigh(accept []string) map[string]float64 {
	weights := map[string]float64{}
	for _, line := range accept {
		for member := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(member, ";")
			name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "x-")
			if name != "" {
				weights[name] = weight(parameters)
			}
		}
	}
	return weights
}

// weight reads q=...; without it a coding weighs 1, with one that is no number
// from 0 to 1 it is not accepted.
func weight(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) { // NaN compares with nothing.
			return 0
		}
		return q
	}
	return 1
}
