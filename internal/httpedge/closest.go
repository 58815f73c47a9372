package httpedge

import "strings"

// maxCompared is the length in bytes beyond which a name is not compared: the names of the service are shorter.
const maxCompared = 64

// Closest returns the candidate that a misspelled name most likely means, or "" if none is similar. A third of the
// characters of a candidate may be wrong, and at least one; the letter case does not matter.
func Closest(name string, candidates []string) string { return closest(name, candidates, similar) }

// closest returns the candidate with the fewest errors among those that are similar to a text.
func closest(
	text string, candidates []string, similar func(text, candidate string) (errors int, ok bool),
) string {
	best, least := "", maxCompared
	for _, candidate := range candidates {
		if d, ok := similar(text, candidate); ok && d < least {
			best, least = candidate, d
		}
	}
	return best
}

// similar returns the number of typing errors that lead from candidate to name; ok is false if there are too many.
func similar(name, candidate string) (errors int, ok bool) {
	if len(name) > maxCompared {
		return 0, false
	}
	d := distance(strings.ToLower(name), candidate)
	return d, d <= max(1, len(candidate)/3) && d < len(candidate)
}

// distance is the optimal string alignment distance of two texts in bytes: the number of bytes that are missing, too
// many, wrong, or swapped with the next.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// ClosestPath returns the path that a misspelled one most likely means, or "" if none is similar. A segment of a
// candidate in braces, such as {device_id}, matches every segment that is not empty.
func ClosestPath(path string, candidates []string) string {
	return closest(path, candidates, similarPath)
}

func similarPath(path, candidate string) (errors int, ok bool) {
	names, wanted := strings.Split(path, "/"), strings.Split(candidate, "/")
	if len(names) != len(wanted) {
		return 0, false
	}
	for i := range wanted {
		d := 0
		switch {
		case strings.HasPrefix(wanted[i], "{"):
			d, ok = 1, names[i] != "" // A literal segment takes precedence.
		case names[i] == wanted[i]:
			ok = true
		default:
			d, ok = similar(names[i], wanted[i])
			d *= 2
		}
		if !ok {
			return 0, false
		}
		errors += d
	}
	return errors, true
}

// Enumerate joins words for a sentence: "GET, HEAD and PATCH".
func Enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
