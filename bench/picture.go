package main

import (
	"fmt"
	"strings"
)

// Measures of the picture, in pixels.
const (
	barHeight  = 18
	barSpace   = 6
	groupSpace = 34
	labelWidth = 220
	plotWidth  = 480
)

// picture draws, for each shape, the seconds until all jobs run as bars. A bar that is more than cutAt times as long as the limit's is cut.
func (r *results) picture() string {
	const cutAt = 6
	var body strings.Builder
	y, last := 0, shape{}
	for _, row := range r.rows {
		if row.shape != last {
			y, last = y+groupSpace, row.shape
			fmt.Fprintf(&body, `<text x="0" y="%d" font-weight="bold">%s pods, seconds until all run</text>`+"\n", y-10, row.shape)
		}
		seconds := median(row.numbers(running))
		share := seconds / (cutAt * r.limit(row.shape))
		color := map[bool]string{true: "#2f6fde", false: "#9aa4b2"}[strings.HasPrefix(row.contender.name(), "our")]
		fmt.Fprintf(&body, `<text x="0" y="%d">%s</text>`+"\n", y+barHeight-5, row.contender.name())
		fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.0f" height="%d" fill="%s"/>`+"\n", labelWidth, y, min(share, 1)*plotWidth, barHeight, color)
		cut := ""
		if share > 1 {
			cut = " (cut)"
		}
		fmt.Fprintf(&body, `<text x="%.0f" y="%d">%.1f%s</text>`+"\n", labelWidth+min(share, 1)*plotWidth+6, y+barHeight-5, seconds, cut)
		y += barHeight + barSpace
	}
	width := labelWidth + plotWidth + 90
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 -10 %d %d" font-family="sans-serif" font-size="13" fill="#444">`+"\n%s</svg>\n",
		width, y+20, width, y+20, body.String())
}
