// The application on NestJS 11, with Express below it.

import 'reflect-metadata';
import { Body, Controller, Delete, Get, Header, HttpCode, HttpException, Injectable, MessageEvent, Module, All, Param, Post, Query, Redirect, Req, Res, Sse, StreamableFile, UploadedFiles, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { NestExpressApplication } from '@nestjs/platform-express';
import { AnyFilesInterceptor } from '@nestjs/platform-express';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { from, Observable } from 'rxjs';
import compression = require('compression');
import content = require('../content.cjs');
import script = require('../script.cjs');

@Injectable()
class Greetings {
  greet() {
    return 'hello\n';
  }
}

@Controller()
class AppController {
  constructor(private readonly greetings: Greetings) {}

  @Get() index() {
    return this.greetings.greet();
  }
  @Get('json') json() {
    return content.DATA;
  }
  @Post('json') create(@Body() body: unknown) {
    return body;
  }
  @Post('form') @HttpCode(200) form(@Body() body: unknown) {
    return body;
  }
  @Post('upload') @UseInterceptors(AnyFilesInterceptor()) upload(@Body() fields: unknown, @UploadedFiles() files: any[]) {
    return { fields, files: files.map(({ fieldname, originalname, mimetype, size, buffer }) => ({ fieldname, originalname, mimetype, size, digest: content.digest(buffer) })) };
  }
  @Get('users/:id') user(@Param('id') id: string, @Query() query: unknown) {
    return { id, query };
  }
  @Delete('users/:id') remove(@Param('id') id: string, @Body() body: unknown) {
    return { id, body: body ?? null };
  }
  @Get('cookies') cookies(@Req() req: any, @Res({ passthrough: true }) res: any) {
    res.cookie('session', 'abc', { httpOnly: true });
    res.append('Set-Cookie', content.COOKIES.slice(1));
    return { cookie: req.headers.cookie };
  }
  @Get('redirect') @Redirect('/json') redirect() {}
  @Get('moved') @Redirect('/json?moved=yes', 301) moved() {}
  @Sse('events') events(): Observable<MessageEvent> {
    return from([{ data: 'hello' }, { data: { two: 'lines' }, id: '7', type: 'tick' }]);
  }
  @Get('file') @Header('Content-Type', 'text/plain') file() {
    return new StreamableFile(createReadStream(join(content.FILES, 'numbers.txt')));
  }
  @Get('empty') @HttpCode(204) empty() {}
  @Get('compressed') compressed() {
    return content.LONG_TEXT;
  }
  @Get('big') big() {
    return new StreamableFile(content.BIG);
  }
  @Get('fields') fields(@Res() res: any) {
    res.set({ ...content.BIG_FIELDS, ...content.MANY_FIELDS }).send('fields');
  }
  @Get('who') who(@Req() req: any) {
    return { ip: req.ip, protocol: req.protocol, hostname: req.hostname, url: req.originalUrl, version: req.httpVersion };
  }
  @Get('throw') throws() {
    throw new Error('thrown');
  }
  @Get('reject') async reject() {
    await content.rest();
    throw new HttpException('rejected', 418);
  }
  @All('node/*rest') node(@Req() req: any, @Res() res: any) {
    return script.perform(req, res);
  }
}

@WebSocketGateway({ path: '/socket' })
class Echo {
  @SubscribeMessage('echo') echo(_client: unknown, data: unknown) {
    return { event: 'echo', data };
  }
}

@Module({ controllers: [AppController], providers: [Greetings, Echo] })
class AppModule {}

async function main() {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
  app.useWebSocketAdapter(new WsAdapter(app));
  app.use(compression());
  app.useStaticAssets(content.FILES, { prefix: '/files/' });
  await app.listen(process.env.PORT || 3000);
}

void main();
