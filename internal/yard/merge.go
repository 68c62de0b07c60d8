package yard

import "container/heap"

// source is a log that is being read. err is set when lines is closed.
type source struct {
	lines <-chan Line
	err   error

	index int
	next  Line
}

// merge emits the lines of all sources in the order of time. Lines of the same time come in the order of the sources.
func merge(sources []*source, emit func(Line)) {
	var waiting byTime
	for i, s := range sources {
		s.index = i
		if next, ok := <-s.lines; ok {
			s.next = next
			waiting = append(waiting, s)
		}
	}
	heap.Init(&waiting)
	for len(waiting) > 0 {
		first := waiting[0]
		emit(first.next)
		if next, ok := <-first.lines; ok {
			first.next = next
			heap.Fix(&waiting, 0)
		} else {
			heap.Pop(&waiting)
		}
	}
}

// byTime is a heap of sources by the time of their next lines.
type byTime []*source

func (s byTime) Len() int      { return len(s) }
func (s byTime) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s byTime) Less(i, j int) bool {
	if order := s[i].next.Time.Compare(s[j].next.Time); order != 0 {
		return order < 0
	}
	return s[i].index < s[j].index
}
func (s *byTime) Push(x any) { *s = append(*s, x.(*source)) }
func (s *byTime) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
