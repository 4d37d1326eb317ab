import { Injectable, NotFoundException } from '@nestjs/common';
import { CreatePlanet } from './create-planet.dto';

export class RefusedError extends Error {}

@Injectable()
export class PlanetsService {
  private readonly planets: CreatePlanet[] = [
    { name: 'earth', days: 365 },
    { name: 'mars', days: 687 },
  ];

  all() {
    return this.planets;
  }

  one(name: string) {
    const planet = this.planets.find((one) => one.name === name);
    if (!planet) throw new NotFoundException(`no planet is called ${name}`);
    return planet;
  }

  add(planet: CreatePlanet) {
    if (this.planets.some(({ name }) => name === planet.name)) throw new RefusedError(`${planet.name} is there already`);
    this.planets.push(planet);
    return planet;
  }
}
