// Apollo's standalone server, as its guide begins.

import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";

const typeDefs = `#graphql
  type Planet {
    name: String!
    days: Int!
  }

  type Query {
    planets(least: Int): [Planet!]!
    fails: String
  }

  type Mutation {
    add(name: String!, days: Int!): Planet!
  }
`;

const planets = [
  { name: "earth", days: 365 },
  { name: "mars", days: 687 },
];

const resolvers = {
  Query: {
    planets: (_, { least = 0 }) => planets.filter(({ days }) => days >= least),
    fails: () => {
      throw new Error("this field always fails");
    },
  },
  Mutation: { add: (_, planet) => planet },
};

const server = new ApolloServer({ typeDefs, resolvers, includeStacktraceInErrorResponses: false });
const { url } = await startStandaloneServer(server, { listen: { port: Number(process.env.PORT || 4000) } });
console.log(`🚀  Server ready at: ${url}`);
