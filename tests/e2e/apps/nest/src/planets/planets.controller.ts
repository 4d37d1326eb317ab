import { Body, Controller, Get, Header, HttpCode, Param, ParseIntPipe, Post, Query, Redirect, Sse, StreamableFile, UseInterceptors } from '@nestjs/common';
import { Readable } from 'stream';
import { interval, map, take } from 'rxjs';
import { WrappedInterceptor } from '../wrapped.interceptor';
import { CreatePlanet } from './create-planet.dto';
import { PlanetsService } from './planets.service';

@Controller('planets')
export class PlanetsController {
  constructor(private readonly planets: PlanetsService) {}

  @Get()
  @UseInterceptors(WrappedInterceptor)
  all() {
    return this.planets.all();
  }

  @Get('longer')
  longer(@Query('than', ParseIntPipe) than: number) {
    return this.planets.all().filter(({ days }) => days > than);
  }

  @Get('ticks')
  @Sse()
  ticks() {
    return interval(10).pipe(take(4), map((tick) => ({ data: { tick } })));
  }

  @Get('list.csv')
  @Header('Content-Type', 'text/csv')
  list() {
    return new StreamableFile(Readable.from(this.planets.all().map(({ name, days }) => `${name},${days}\n`)));
  }

  @Get('fails')
  fails() {
    throw new Error('this route always fails');
  }

  @Get('old')
  @Redirect('/planets', 301)
  old() {}

  @Get(':name')
  one(@Param('name') name: string) {
    return this.planets.one(name);
  }

  @Post()
  @HttpCode(201)
  add(@Body() planet: CreatePlanet) {
    return this.planets.add(planet);
  }
}
