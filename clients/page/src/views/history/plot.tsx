/** A plot with its figures as a table, in the colours of the theme. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { useMedia } from "../../media.ts";
import { theme } from "../../theme.ts";

const HEIGHT = 200;

export interface PlotColors {
  text: string;
  line: string;
  accent: string;
  good: string;
  warn: string;
  bad: string;
  soft: string;
}

interface PlotProps {
  title: string;
  /** The text alternative in one sentence, such as the highest value. */
  summary: string;
  data: uPlot.AlignedData;
  options: (colors: PlotColors) => Omit<uPlot.Options, "width" | "height">;
  /** The same figures as a table. */
  table: ComponentChildren;
}

export function Plot({ title, summary, data, options, table }: PlotProps) {
  const host = useRef<HTMLDivElement>(null);
  const dark = useMedia("(prefers-color-scheme: dark)");
  const latest = useRef(options);
  latest.current = options;
  const chosen = theme.value;
  // Made again when the shape or the theme changes, else only filled with the new figures.
  const shape = `${data.length} ${chosen} ${dark} ${title}`;
  const plot = useRef<uPlot>(null);
  useEffect(() => {
    const element = host.current!;
    const sized = { width: element.clientWidth || 300, height: HEIGHT, legend: { show: false } };
    const made = new uPlot({ ...latest.current(colorsOf(element)), ...sized }, data, element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [data]);
  return (
    <figure class="plot card">
      <figcaption>
        <h2>{title}</h2>
        <p class="dim">{summary}</p>
      </figcaption>
      <div ref={host} class="plot-canvas" role="img" aria-label={`${title}: ${summary}`} />
      <details>
        <summary>As a table</summary>
        {table}
      </details>
    </figure>
  );
}

/** A canvas knows no custom properties, so this reads what they are at an element. */
function colorsOf(element: HTMLElement): PlotColors {
  const read = (name: string) => {
    element.style.color = `var(--${name})`;
    return getComputedStyle(element).color;
  };
  const colors = {
    text: read("text-dim"),
    line: read("line"),
    accent: read("accent"),
    good: read("good"),
    warn: read("warn"),
    bad: read("bad"),
    soft: read("accent-soft"),
  };
  element.style.color = "";
  return colors;
}

/** An axis in the theme's colours. */
export function axis(colors: PlotColors, more: uPlot.Axis = {}): uPlot.Axis {
  const line = { stroke: colors.line, width: 1 };
  return { stroke: colors.text, grid: line, ticks: line, font: "12px system-ui, sans-serif", ...more };
}
