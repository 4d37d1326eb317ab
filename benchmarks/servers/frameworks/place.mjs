// Where every server of this folder listens: as a program anywhere would be told.

/** Options of `listen`. */
export const PLACE = { port: Number(process.env.PORT ?? 3000), host: "127.0.0.1", backlog: 4096 };
