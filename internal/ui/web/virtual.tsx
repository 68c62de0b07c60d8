// A list of any length of which only the visible rows exist.
import { type ComponentChildren, h } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

// highest is how high an element may be: browsers fail at 17 to 33 million pixels. A longer list scrolls by more than its pixels.
const highest = 8_000_000;

type Props = {
	total: number;
	rowHeight: number;
	class?: string;
	label: string;
	// row draws one row; range is told which rows are visible.
	row: (index: number) => ComponentChildren;
	range: (first: number, last: number) => void;
	// show brings a row into view each time that jump changes, unless it is there; end keeps the end in view.
	show?: number;
	jump?: unknown;
	end?: boolean;
	// scrolled is told that the person scrolls, and whether the end is in view.
	scrolled?: (atEnd: boolean) => void;
};

export function Virtual(p: Props) {
	const box = useRef<HTMLDivElement>(null);
	const own = useRef(-1); // the position that this program has set: the event it causes is not the person's
	const [top, setTop] = useState(0);
	const [view, setView] = useState(600);
	const real = p.total * p.rowHeight;
	const height = Math.min(real, highest);
	const scale = height > view ? Math.max(0, real - view) / (height - view) : 1;
	const first = Math.max(0, Math.min(Math.floor((top * scale) / p.rowHeight), p.total - 1));
	const last = Math.min(p.total, first + Math.ceil(view / p.rowHeight) + 1);
	const move = (to: number) => {
		const b = box.current;
		if (!b) return;
		b.scrollTop = to;
		own.current = b.scrollTop;
		setTop(b.scrollTop);
	};
	useLayoutEffect(() => {
		const measure = () => setView(box.current?.clientHeight || 600);
		measure();
		const observer = new ResizeObserver(measure);
		observer.observe(box.current!);
		return () => observer.disconnect();
	}, []);
	useEffect(() => { p.range(first, last); }, [first, last, p.total]);
	useLayoutEffect(() => { if (p.end) move(height); }, [p.end, height, view]);
	useLayoutEffect(() => {
		if (p.show === undefined || p.show < 0 || p.total === 0) return;
		const at = p.show * p.rowHeight, from = (box.current?.scrollTop ?? 0) * scale;
		if (at < from || at + p.rowHeight > from + view) move(Math.max(0, (p.show * p.rowHeight - view / 3) / scale));
	}, [p.jump, p.total > 0]);
	const rows = [];
	for (let i = first; i < last; i++) rows.push(p.row(i));
	return <div class={"scroll " + (p.class ?? "")} ref={box} tabIndex={0} role="region" aria-label={p.label} onScroll={() => {
		const b = box.current!;
		setTop(b.scrollTop);
		if (b.scrollTop !== own.current) p.scrolled?.(b.scrollTop + b.clientHeight >= b.scrollHeight - 4);
		own.current = -1;
	}}>
		<div class="tall" style={{ height: height + "px" }}>
			<div class="rows" style={{ transform: `translateY(${top - ((top * scale) % p.rowHeight)}px)` }}>{rows}</div>
		</div>
	</div>;
}
