package simulation

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// The sizes of a picture.
const (
	width, right           = 900, 20
	narrow, letter, margin = 110, 7, 8 // the space left of the bars: at least, for each letter, around the names
	rowHeight, barGap      = 26, 5
)

// SVG is the life as a picture: a row for each replica, a bar for each of its runs, in the colour of its end.
func (l *Life) SVG() string {
	rows := l.rows()
	left := narrow
	for _, row := range rows {
		left = max(left, margin+letter*len(row)+margin)
	}
	scale := func(d time.Duration) float64 {
		return float64(left) + float64(width-left-right)*float64(d)/float64(max(l.span(), time.Second))
	}
	height := (len(rows)+2)*rowHeight + 10
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	for i, row := range rows {
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end" fill="#333">%s</text>`+"\n", left-margin, i*rowHeight+18, html.EscapeString(row))
	}
	for _, r := range l.Runs {
		y := index(rows, r.Replica)*rowHeight + barGap
		fmt.Fprintf(&out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="3" fill="%s"><title>%s</title></rect>`+"\n",
			scale(r.Start), y, max(scale(r.End)-scale(r.Start), 2), rowHeight-2*barGap, colour(r), html.EscapeString(r.String()))
	}
	bottom := len(rows)*rowHeight + 6
	fmt.Fprintf(&out, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#999"/>`+"\n", left, bottom, width-right, bottom)
	for t, step := time.Duration(0), tick(l.span()); t <= l.span(); t += step {
		fmt.Fprintf(&out, `<text x="%.1f" y="%d" text-anchor="middle" fill="#666">%s</text>`+"\n", scale(t), bottom+16, short(t))
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d" fill="#333">%s</text>`+"\n</svg>\n", left, bottom+36, html.EscapeString(l.summary()))
	return out.String()
}

func (r Run) String() string {
	end := "stopped"
	if r.Code >= 0 {
		end = fmt.Sprintf("exit code %d", r.Code)
	}
	return fmt.Sprintf("%s, attempt %d: %s to %s, %s", r.Replica, r.Attempt+1, short(r.Start), short(r.End), end)
}

// span is the time the picture shows: all runs.
func (l *Life) span() time.Duration {
	var end time.Duration
	for _, r := range l.Runs {
		end = max(end, r.End)
	}
	return end
}

// rows are the replicas in the order in which they first ran.
func (l *Life) rows() []string {
	var rows []string
	for _, r := range l.Runs {
		if index(rows, r.Replica) < 0 {
			rows = append(rows, r.Replica)
		}
	}
	return rows
}

func index(rows []string, name string) int {
	for i, row := range rows {
		if row == name {
			return i
		}
	}
	return -1
}

// colour is green for a run that succeeded, red for one that failed, grey for one that was stopped.
func colour(r Run) string {
	switch r.Code {
	case 0:
		return "#3a9d5d"
	case -1:
		return "#9db2c9"
	default:
		return "#d1495b"
	}
}

// tick is the distance between two marks of the time axis: a round number, so that there are at most ten marks.
func tick(span time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
		5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour} {
		if span/step <= 10 {
			return step
		}
	}
	return 24 * time.Hour
}
