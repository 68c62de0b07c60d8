package scalar

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Marker begins what a program reports on purpose: a JSON object with figures by name follows, to the end of the line. Every number of it counts,
// whatever its name.
const Marker = "trainyard-scalars "

// maxPushed is how long such an object may be.
const maxPushed = 64 << 10

// notNumbers are numbers that JSON does not have, as Python's and JavaScript's libraries write them.
var notNumbers = regexp.MustCompile(`(:\s*)(-?(?:NaN|Infinity))`)

// pushed reads the object that follows the marker. It is not ok where the line has no marker, or no figures after it.
func pushed(line string) (p Point, ok bool) {
	before, text, found := strings.Cut(line, Marker)
	if !found || before != "" && !strings.HasSuffix(before, " ") || len(text) > maxPushed {
		return Point{}, false
	}
	var figures map[string]any
	if json.Unmarshal([]byte(notNumbers.ReplaceAllString(text, `$1"$2"`)), &figures) != nil {
		return Point{}, false
	}
	p.Step = math.NaN()
	best := len(steps)
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		value, ok := figures[name].(float64)
		if text, isText := figures[name].(string); isText && (strings.HasSuffix(text, "NaN") || strings.HasSuffix(text, "Infinity")) {
			var err error
			value, err = strconv.ParseFloat(text, 64)
			ok = err == nil
		}
		rank := slices.Index(steps, strings.ToLower(name))
		switch {
		case !ok:
		case rank < 0 && len(p.Pairs) < maxSeries:
			p.Pairs = append(p.Pairs, Pair{name, value})
		case rank >= 0 && rank < best:
			best, p.Step = rank, value
		}
	}
	return p, len(p.Pairs) > 0
}
