/** Line drawings of the navigation, in the colour of the text. */
const PATHS: Record<string, string> = {
  "/now": "M3 12h4l2.5-7 5 14 2.5-7h4",
  "/decide": "M12 3l8 3v6c0 4.5-3.2 7.7-8 9-4.8-1.3-8-4.5-8-9V6zM8.5 12l2.5 2.5 4.5-5",
  "/tools": "M14.5 6.5a4 4 0 0 1 5-1l-2.7 2.7 1 1L20.5 6.500a4 4 0 0 1-5.600 5L8 18.500a1.800 1.800 0 0 1-2.500-2.500l6.900-6.900",
  "/sources": "M9 3v5M15 3v5M6 8h12v4a6 6 0 0 1-12 0zM12 18v3",
  "/rules": "M12 4v16M5 8h14M5 8l-2.500 6h5zM19 8l-2.500 6h5zM8 20h8",
  "/history": "M4 12a8 8 0 1 0 2.500-5.800L4 8.500M4 4v4.500h4.500M12 8v4.500l3 2",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
