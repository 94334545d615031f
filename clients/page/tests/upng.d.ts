declare module "upng-js" {
  interface Image {
    width: number;
    height: number;
  }
  const UPNG: {
    decode(png: ArrayBuffer): Image;
    toRGBA8(image: Image): ArrayBuffer[];
    /** With at most so many colours. */
    encode(frames: ArrayBuffer[], width: number, height: number, colours: number): ArrayBuffer;
  };
  export default UPNG;
}
