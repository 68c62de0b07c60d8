import { useEffect, useState } from "preact/hooks";

// useTick draws again every so many seconds while the page can be seen, because ages grow. It returns how often it has.
export function useTick(seconds: number): number {
	const [ticks, setTicks] = useState(0);
	useEffect(() => {
		const timer = setInterval(() => { if (!document.hidden) setTicks((n) => n + 1); }, seconds * 1000);
		return () => clearInterval(timer);
	}, [seconds]);
	return ticks;
}
